"""Opens and closes the services of one event loop, from the settings; every part can be passed in instead."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from recuerdo.nodes.call_llm.model import build_model, close_model, model_name
from recuerdo.nodes.check_tokens import refuse_oversized_head
from recuerdo.nodes.run_tools.toolbox import make_toolbox
from recuerdo.nodes.services import Clock, Services, system_clock
from recuerdo.state.counting import model_family
from recuerdo.state.errors import StoreError
from recuerdo.state.plan import Plan
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.chroma import VectorIndex, open_index
from recuerdo.stores.embeddings import BundledEmbedder, Embedder, LangChainEmbedder
from recuerdo.stores.plans import load_plan
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.embedded import EmbeddedServer
from recuerdo.stores.postgres.platform import platform_sources
from recuerdo.stores.postgres.token_factors import TokenFactor
from recuerdo.stores.settings import Settings
from recuerdo.stores.sources.calendar import MarketCalendar
from recuerdo.stores.sources.calendar_cache import CalendarCache
from recuerdo.stores.sources.registry import Source, Sources
from recuerdo.stores.tokens import TokenCounter, encoding_for
from recuerdo.stores.worker import Worker

sentences = load_sentences(__package__)

WORKER_ENDS_SECONDS = 10.0


@dataclass(frozen=True)
class Parts:
    """Parts that an app passes in; what is None comes from the settings."""

    plan: str | Plan | None = None
    model: BaseChatModel | None = None
    embeddings: Embeddings | None = None
    sources: Sequence[Source] = ()
    clock: Clock | None = None
    tools: Sequence[BaseTool] = field(default=())


@asynccontextmanager
async def open_services(settings: Settings, parts: Parts) -> AsyncIterator[Services]:
    """Open the services for the running event loop and close them at the end.

    Raises SettingsError or StoreError when a part cannot be opened; what was open by then is closed.
    """
    async with AsyncExitStack() as stack:
        yield await _open(settings, parts, stack)


@asynccontextmanager
async def running_worker(services: Services, tenant: str) -> AsyncIterator[None]:
    """The worker's loop beside an agent, ended with it; a job that has begun is ended first."""
    stop = asyncio.Event()
    worker = Worker(services.database, services.index, services.embedder, services.clock, tenant=tenant)
    running = asyncio.create_task(worker.run(stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(running, WORKER_ENDS_SECONDS)


async def _open(settings: Settings, parts: Parts, stack: AsyncExitStack) -> Services:
    plan = await _plan(settings, parts)
    toolbox = make_toolbox(plan, parts.tools)
    embedder: Embedder = LangChainEmbedder(parts.embeddings) if parts.embeddings else BundledEmbedder()
    await asyncio.to_thread(_make_folder, settings)
    # Side by side: each of these takes long, and each in its own way.
    named = model_name(parts.model) if parts.model else settings.model
    model = asyncio.create_task(_model(settings, parts, stack))
    counter = asyncio.create_task(asyncio.to_thread(TokenCounter, encoding_for(named)))
    index = asyncio.create_task(_index(settings, embedder, stack))
    database = asyncio.create_task(_database(settings, stack))
    await _all_done(model, counter, index, database)
    name = model_name(model.result())
    factor = await TokenFactor.load(database.result(), model_family(name) if name else None)
    services = Services(
        settings=settings,
        plan=plan,
        model=model.result(),
        database=database.result(),
        index=index.result(),
        embedder=embedder,
        counter=counter.result(),
        factor=factor,
        sources=Sources([*_enabled(database.result(), plan), *parts.sources]),
        calendar=MarketCalendar(CalendarCache(settings.data / "calendars")),
        clock=parts.clock or system_clock,
        toolbox=toolbox,
    )
    await asyncio.to_thread(refuse_oversized_head, services)
    return services


async def _all_done(*tasks: asyncio.Task[Any]) -> None:
    """Wait for all, then raise what failed first: none is broken off, so what was opened gets closed."""
    await asyncio.wait(tasks)
    failures = [failure for task in tasks if (failure := task.exception())]
    if failures:
        raise failures[0]


async def _model(settings: Settings, parts: Parts, stack: AsyncExitStack) -> BaseChatModel:
    if parts.model is not None:
        return parts.model
    model = await asyncio.to_thread(build_model, settings)
    stack.push_async_callback(close_model, model)
    return model


async def _plan(settings: Settings, parts: Parts) -> Plan:
    if isinstance(parts.plan, Plan):
        return parts.plan
    return await asyncio.to_thread(load_plan, parts.plan or settings.plan)


async def _index(settings: Settings, embedder: Embedder, stack: AsyncExitStack) -> VectorIndex:
    index = await open_index(settings.data / "chroma", embedder)
    stack.push_async_callback(index.close)
    return index


async def _database(settings: Settings, stack: AsyncExitStack) -> Database:
    database = await Database.open(await _conninfo(settings, stack))
    stack.push_async_callback(database.close)
    return database


async def _conninfo(settings: Settings, stack: AsyncExitStack) -> str:
    """The configured server, else the embedded one in the data folder."""
    if settings.database_url:
        return settings.database_url.get_secret_value()
    server = EmbeddedServer(settings.data / "postgres")
    conninfo = await asyncio.to_thread(server.start)
    stack.push_async_callback(asyncio.to_thread, server.stop)
    return conninfo


def _make_folder(settings: Settings) -> None:
    try:
        settings.data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(sentences("data_folder", folder=settings.data, reason=error.strerror)) from None


def _enabled(database: Database, plan: Plan) -> list[Source]:
    return [source for source in platform_sources(database) if source.name in plan.sources]
