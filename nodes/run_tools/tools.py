"""The tools that ship: they read only, under the caller's scope, which comes with the run's config."""

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException

from recuerdo.nodes.build_context.symbols import find_symbols
from recuerdo.nodes.call import Call
from recuerdo.stores.sources.registry import SourceQuery

CALL = "recuerdo_call"
"""Key in ``configurable`` under which a tool finds the call that it runs in."""

PAGE_CHARACTERS = 4000
"""How much of a stored result one call of ``read_tool_result`` returns."""


async def get_quote(symbol: str, config: RunnableConfig) -> str:
    """Get the latest quote of one symbol, for example AAPL."""
    call = call_of(config)
    mentions = find_symbols(symbol)
    wanted = mentions[0].symbol if mentions else symbol.strip().upper()
    query = SourceQuery(call.caller.tenant, call.caller.user, (wanted,), call.services.clock())
    fetched = await call.services.sources.fetch("quotes", query)
    if fetched.is_away:
        raise ToolException(f"quotes are not available now: {fetched.reason}")
    if not fetched.value:
        raise ToolException(f"no quote for {wanted}")
    quote = fetched.value[0]
    return (
        f"{quote.symbol}: price {quote.price} {quote.currency}, change {quote.change_percent} %,"
        f" volume {quote.volume}, as of {quote.as_of.isoformat()}"
    )


async def read_tool_result(reference: str, config: RunnableConfig, offset: int = 0) -> str:
    """Read the whole of an earlier tool result that was cut, by its reference, from a character offset."""
    call = call_of(config)
    whole = await call.turns.tool_result(call.caller.conversation, reference, call.caller.user)
    if whole is None:
        raise ToolException(f"no tool result with reference {reference}")
    start = max(offset, 0)
    page = whole[start : start + PAGE_CHARACTERS]
    rest = max(len(whole) - start - len(page), 0)
    return f"{page}\n({rest} more characters)" if rest else page


def call_of(config: RunnableConfig) -> Call:
    """The call that a tool of the agent's runs in."""
    call = config.get("configurable", {}).get(CALL)
    assert isinstance(call, Call), "run_tools passes the call along"
    return call


SHIPPED_TOOLS: dict[str, BaseTool] = {
    function.__name__: StructuredTool.from_function(
        coroutine=function, metadata={"read_only": True}, handle_tool_error=True
    )
    for function in (get_quote, read_tool_result)
}
