"""The tools that ship: they read only, under the caller's scope."""

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from recuerdo.nodes.build_context.symbols import find_symbols
from recuerdo.nodes.call import Call
from recuerdo.stores.sources.registry import SourceQuery

PAGE_CHARACTERS = 4000
"""How much of a stored result one call of ``read_tool_result`` returns."""


def shipped_tools(call: Call) -> dict[str, BaseTool]:
    """The shipped tools, bound to the caller, by name."""

    async def get_quote(symbol: str) -> str:
        """Get the latest quote of one symbol, for example AAPL."""
        mentions = find_symbols(symbol)
        wanted = mentions[0].symbol if mentions else symbol.strip().upper()
        query = SourceQuery(call.caller.tenant, call.caller.user, (wanted,), call.services.clock())
        fetched = await call.services.sources.fetch("quotes", query)
        if fetched.status == "unavailable":
            raise ToolException(f"quotes are not available now: {fetched.reason}")
        if not fetched.value:
            raise ToolException(f"no quote for {wanted}")
        quote = fetched.value[0]
        return (
            f"{quote.symbol}: price {quote.price} {quote.currency}, change {quote.change_percent} %,"
            f" volume {quote.volume}, as of {quote.as_of.isoformat()}"
        )

    async def read_tool_result(reference: str, offset: int = 0) -> str:
        """Read the whole of an earlier tool result that was cut, by its reference, from a character offset."""
        whole = await call.turns.tool_result(call.caller.conversation, reference, call.caller.user)
        if whole is None:
            raise ToolException(f"no tool result with reference {reference}")
        page = whole[max(offset, 0) : max(offset, 0) + PAGE_CHARACTERS]
        rest = len(whole) - max(offset, 0) - len(page)
        return f"{page}\n({rest} more characters)" if rest > 0 else page

    functions = (get_quote, read_tool_result)
    return {
        function.__name__: StructuredTool.from_function(
            coroutine=function, metadata={"read_only": True}, handle_tool_error=True
        )
        for function in functions
    }
