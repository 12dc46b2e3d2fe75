"""A part of a step is imported without the step: what only reads a text starts fast (``recuerdo inspect``)."""

import subprocess
import sys

import pytest

PARTS = [
    "recuerdo.nodes.build_context.symbols",
    "recuerdo.nodes.receive.language",
    "recuerdo.stores.sensitive",
]


@pytest.mark.parametrize("part", PARTS)
def test_reading_a_text_imports_neither_langgraph_nor_langchain(part: str) -> None:
    code = f"import sys, {part}; print(sorted({{'langgraph', 'langchain_core', 'psycopg'}} & sys.modules.keys()))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
