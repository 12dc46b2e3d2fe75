"""The drawing of the turn graph: what Studio, the README and an app's reader see (RF-46 to RF-55, design section 1)."""

from langgraph.graph import END, START

from recuerdo.graph.turn import build_turn_graph
from recuerdo.nodes.services import Services

FIXED = {
    (START, "receive"),
    ("build_context", "check_tokens"),
    ("compress", "check_tokens"),
    ("build_prompt", "call_llm"),
    ("run_tools", "build_context"),
    ("update_memory", END),
}
CHOSEN = {
    ("receive", "build_context"),
    ("receive", "update_memory"),
    ("check_tokens", "compress"),
    ("check_tokens", "build_prompt"),
    ("check_tokens", "update_memory"),
    ("call_llm", "run_tools"),
    ("call_llm", "update_memory"),
}


async def _never() -> Services:
    raise AssertionError("a drawing needs no services")


def test_rf_46_to_55_every_edge_of_the_turn_is_drawn_and_no_other() -> None:
    edges = build_turn_graph(_never).get_graph().edges
    assert {(edge.source, edge.target) for edge in edges if not edge.conditional} == FIXED
    assert {(edge.source, edge.target) for edge in edges if edge.conditional} == CHOSEN
    assert len(edges) == len(FIXED) + len(CHOSEN)


def test_the_drawing_is_flat() -> None:
    graph = build_turn_graph(_never)
    assert list(graph.get_subgraphs()) == []
    assert graph.get_graph(xray=True).nodes.keys() == graph.get_graph().nodes.keys()


def test_the_picture_names_every_node() -> None:
    graph = build_turn_graph(_never).get_graph()
    picture = graph.draw_mermaid()
    assert [name for name in graph.nodes if name not in picture] == []
