"""Opens an agent from settings and parts, and closes it."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from types import TracebackType

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver

from recuerdo.agent import Agent
from recuerdo.graph.services import Parts, open_services, preview_stores, running_worker
from recuerdo.graph.turn import build_turn_graph
from recuerdo.nodes.check_tokens import refuse_unusable_packs
from recuerdo.nodes.run_tools.toolbox import refuse_unknown_tools
from recuerdo.nodes.services import Clock, Services
from recuerdo.state.errors import SettingsError
from recuerdo.state.plan import Plan
from recuerdo.state.turn import Mode
from recuerdo.stores.background_loop import BackgroundLoop
from recuerdo.stores.postgres.checkpoints import open_saver
from recuerdo.stores.settings import Settings
from recuerdo.stores.sources.registry import Source

_log = logging.getLogger(__name__)


class AgentOpening:
    """What :func:`recuerdo.open_agent` returns: ``async with`` for async code, ``with`` for scripts."""

    def __init__(
        self, settings: Settings | None, parts: Parts, tenant: str | None, assistant: str | None, mode: Mode
    ) -> None:
        self._settings = settings
        self._parts = parts
        self._tenant = tenant
        self._assistant = assistant
        self._mode = mode
        self._stack = AsyncExitStack()
        self._loop: BackgroundLoop | None = None

    async def __aenter__(self) -> Agent:
        async with AsyncExitStack() as stack:
            settings = await asyncio.to_thread(Settings.load) if self._settings is None else self._settings
            services = await stack.enter_async_context(open_services(settings, self._parts))
            # What a preview leaves behind goes with its agent (LA-7, C-14).
            preview = self._mode == "preview"
            saver = InMemorySaver() if preview else await open_saver(services.database)
            if preview:
                stores = preview_stores(settings, self._parts)
                stack.push_async_callback(stores.aclose)
                services = replace(services, stores=stores)

            async def provide() -> Services:
                return services

            tenant = self._tenant or settings.tenant
            await refuse_unusable_packs(services, tenant)
            _warn_of_unguarded(services)
            assistant = self._assistant or services.plan.name
            if not preview:
                # What a preview tries must not act on what is kept: a draft would read live conversations.
                await stack.enter_async_context(running_worker(services, tenant, assistant))
            agent = Agent(services, build_turn_graph(provide, saver), tenant, assistant, self._mode)
            self._stack = stack.pop_all()
        return agent

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    def __enter__(self) -> Agent:
        self._loop = BackgroundLoop()
        try:
            agent = self._loop.run(self.__aenter__())
        except BaseException:
            self._loop.close()
            raise
        agent._loop = self._loop
        return agent

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._loop is not None, "entered before"
        try:
            self._loop.run(self._stack.aclose())
        finally:
            self._loop.close()


def _warn_of_unguarded(services: Services) -> None:
    """A signed plan guards tools by the names of its day. Where an app brings others now, one may have been renamed,
    and needs nobody any more; one that brings none, as the command line, leaves such tools to the app.
    """
    if services.revision is None or not services.app_tools:
        return
    try:
        refuse_unknown_tools(services.plan, services.app_tools)
    except SettingsError as error:
        _log.warning("%s", error.sentence.en)


def open_agent(
    settings: Settings | None = None,
    *,
    plan: str | Plan | None = None,
    tenant: str | None = None,
    assistant: str | None = None,
    model: BaseChatModel | None = None,
    embeddings: Embeddings | None = None,
    sources: Sequence[Source] = (),
    clock: Clock | None = None,
    mode: Mode = "live",
    tools: Sequence[BaseTool] = (),
) -> AgentOpening:
    """Open an agent: ``async with recuerdo.open_agent() as agent`` or, in scripts, a plain ``with``.

    Args:
        settings: deployment settings; None reads the environment.
        plan: name of a plan, whose revision in force every turn runs under; or a draft: a plan, or with
            RECUERDO_DRAFTS=1 the path of a YAML file. None: the setting.
        tenant: whose data; None: the setting.
        assistant: scope of long-term memories; None: the plan's name.
        model: any LangChain chat model; None: the setting, or the offline responder.
        embeddings: any LangChain embeddings; None: the bundled model.
        sources: objects that follow ``recuerdo.Source``, in place of the PostgreSQL ones of the same name.
        clock: returns the present instant, aware; None: the machine's.
        mode: ``preview`` neither reads nor writes memory (LA-7).
        tools: tools of the app's own, beside those of the plan.

    Raises when entered: SettingsError or StoreError that says what to do.
    """
    parts = Parts(plan, model, embeddings, sources, clock, tools, tenant)
    return AgentOpening(settings, parts, tenant, assistant, mode)
