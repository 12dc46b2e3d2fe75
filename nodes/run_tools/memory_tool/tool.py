"""The tool itself: LangChain's face, answers as JSON text, and no exception that reaches the model (ET-35)."""

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, ToolException
from langchain_core.tools.base import ArgsSchema
from pydantic import Field

from recuerdo.nodes.run_tools.memory_tool import texts
from recuerdo.nodes.run_tools.memory_tool.arguments import Refused
from recuerdo.nodes.run_tools.memory_tool.operations import Backing, perform
from recuerdo.state.errors import RecuerdoError, StoreError
from recuerdo.stores.postgres.text import storable
from recuerdo.stores.sensitive import redact

logger = logging.getLogger(__name__)

LONGEST_ERROR = 500
"""Characters of an answer that is an error, braces and all (IM-13)."""

_READ_OF_REASON = 5_000
"""Characters of an exception's text that are looked through for secrets; only the first few are shown."""


class MemoryTool(BaseTool):
    """Memories of the user that a conversation is with: add, search, update, delete (ET-1 to ET-40).

    Whose they are comes from ``config["configurable"]``: ``assistant_id`` and ``ad_user_id``; arguments that name
    somebody else are ignored (ET-28). It answers with a JSON object as text: ``{"result": text}``, or
    ``{"error": text}`` of at most 500 characters, then with the status "error".
    """

    name: str = texts.NAME
    description: str = texts.DESCRIPTION
    args_schema: ArgsSchema | None = texts.SCHEMA
    # Its text is the answer: that is how LangChain marks a result as an error.
    handle_tool_error: bool | str | Callable[[ToolException], str] | None = True
    backing: Callable[[RunnableConfig], Backing] = Field(exclude=True, repr=False)
    """Gives what a call works on: of a store, always the same; in an agent, that of the turn."""

    # Positional only: a model may name an argument "self".
    async def _arun(self, /, *, config: RunnableConfig, **arguments: Any) -> str:
        return await _answer(self.backing, config, arguments)

    def _run(self, /, *, config: RunnableConfig, **arguments: Any) -> str:
        return _run_to_end(_answer(self.backing, config, arguments))


async def _answer(
    backing: Callable[[RunnableConfig], Backing], config: RunnableConfig, arguments: Mapping[str, Any]
) -> str:
    try:
        return _as_json("result", await perform(arguments, config, backing(config)))
    except (Refused, RecuerdoError) as error:
        # A store that is away is no fault of the call, so it is told apart from those that are (C-18).
        reason = await _unexpected(error) if isinstance(error, StoreError) else str(error)
    except Exception as error:
        reason = await _unexpected(error)
    raise ToolException(_short_error(reason))


async def _unexpected(error: Exception) -> str:
    logger.warning("memory tool: %s", type(error).__name__)
    shown = await asyncio.to_thread(redact, str(error)[:_READ_OF_REASON])
    return texts.UNEXPECTED.format(reason=shown.text or type(error).__name__)


def _short_error(reason: str) -> str:
    whole = _as_json("error", reason)
    if len(whole) <= LONGEST_ERROR:
        return whole
    # JSON writes some characters as six, so only the whole answer shows how much fits.
    kept = reason[:LONGEST_ERROR]
    while len(answer := _as_json("error", kept + "…")) > LONGEST_ERROR:
        kept = kept[:-1]
    return answer


def _as_json(key: str, text: str) -> str:
    return json.dumps({key: storable(text)}, ensure_ascii=False)


def _run_to_end(work: Coroutine[Any, Any, str]) -> str:
    """Run on a loop of its own: the caller may stand inside a running one."""
    with ThreadPoolExecutor(1, thread_name_prefix="recuerdo-memory-tool") as thread:
        return thread.submit(asyncio.run, work).result()
