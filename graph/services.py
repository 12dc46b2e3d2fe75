"""Opens and closes the services of one event loop, from the settings; every part can be passed in instead."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from recuerdo.graph.in_force import Equipment, OneDraft, SignedPlans
from recuerdo.graph.learning import learning_job
from recuerdo.nodes.call_llm.model import build_model, close_model, model_name
from recuerdo.nodes.check_tokens import refuse_oversized_head
from recuerdo.nodes.extract_events import PERIOD, EventReader
from recuerdo.nodes.run_tools.toolbox import refuse_unknown_tools
from recuerdo.nodes.services import Clock, Services, system_clock
from recuerdo.state.counting import model_family
from recuerdo.state.errors import StoreError
from recuerdo.state.os_errors import system_reason
from recuerdo.state.plan import Plan
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.chroma import VectorIndex, open_index
from recuerdo.stores.embeddings import Embedder, LangChainEmbedder, build_embedder
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.memory_store.events import PreviewKeyEvents
from recuerdo.stores.memory_store.home import Backend
from recuerdo.stores.memory_store.in_memory import InMemoryMemories
from recuerdo.stores.memory_store.items_in_memory import InMemoryItems
from recuerdo.stores.memory_store.opening import TenantStores, postgres_backend, store_embedder
from recuerdo.stores.plans import is_file, load_draft
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.embedded import EmbeddedServer
from recuerdo.stores.postgres.platform import platform_sources
from recuerdo.stores.postgres.token_factors import TokenFactor
from recuerdo.stores.settings import Settings
from recuerdo.stores.sources.calendar import MarketCalendar
from recuerdo.stores.sources.calendar_cache import CalendarCache
from recuerdo.stores.sources.providers import chosen_sources
from recuerdo.stores.sources.registry import Source, Sources
from recuerdo.stores.tokens import TokenCounter, encoding_for
from recuerdo.stores.worker import Job, Worker

sentences = load_sentences(__package__)

WORKER_ENDS_SECONDS = 10.0


@dataclass(frozen=True)
class Parts:
    """Parts that an app passes in; what is None comes from the settings.

    ``to_look``: no turn will run, so a plan that ships is not signed for a tenant that has never used it.
    """

    plan: str | Plan | None = None
    model: BaseChatModel | None = None
    embeddings: Embeddings | None = None
    sources: Sequence[Source] = ()
    clock: Clock | None = None
    tools: Sequence[BaseTool] = field(default=())
    tenant: str | None = None
    to_look: bool = False


@asynccontextmanager
async def open_services(settings: Settings, parts: Parts) -> AsyncIterator[Services]:
    """Open the services for the running event loop and close them at the end.

    Raises SettingsError or StoreError when a part cannot be opened; what was open by then is closed.
    """
    async with AsyncExitStack() as stack:
        yield await _open(settings, parts, stack)


def preview_stores(settings: Settings, parts: Parts) -> TenantStores:
    """The stores of a preview: empty, gone with it, and without key events (LA-7, C-14)."""

    async def open_tenant(tenant: str, own: AsyncExitStack) -> Backend:
        embedder = await _store_embedder(settings, parts.embeddings)
        return Backend(
            items=InMemoryItems(),
            memories=cache(lambda assistant: InMemoryMemories(embedder, assistant=assistant)),
            events=lambda assistant, **settings: PreviewKeyEvents(),
            embedder=embedder,
            clock=parts.clock or system_clock,
        )

    return TenantStores(open_tenant)


@asynccontextmanager
async def running_worker(
    services: Services, tenant: str, assistant: str | None = None
) -> AsyncIterator[None]:
    """The worker's loop beside a live agent, ended with it; a job that has begun is ended first.

    One that takes longer is broken off: what it did not finish waits in the tables. ``assistant`` None: key events are
    read for every assistant of the plan.
    """
    stop = asyncio.Event()
    worker = Worker(
        services.database,
        services.index,
        services.embedder,
        services.clock,
        tenant=tenant,
        jobs=[
            events_job(services, assistant, tenant=tenant),
            learning_job(services, tenant=tenant),
        ],
    )
    running = asyncio.create_task(worker.run(stop))
    try:
        yield
    finally:
        stop.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(running, WORKER_ENDS_SECONDS)


def events_job(
    services: Services, assistant: str | None = None, *, tenant: str | None = None, spared: Sequence[str] = ()
) -> Job:
    """Reading key events out of an assistant's conversations, None: of every assistant of the plan (LA-26)."""
    reader = EventReader(services, assistant)
    return Job(
        f"key_events:{assistant or services.plan.name + ':*'}:{tenant or ''}",
        PERIOD,
        lambda now: reader.read_due(now, tenant=tenant, spared=spared),
    )


async def _open(settings: Settings, parts: Parts, stack: AsyncExitStack) -> Services:
    draft = await _draft(settings, parts)
    if draft is not None:
        # Before anything is opened: what is wrong with it shows at once.
        refuse_unknown_tools(draft, parts.tools)
    embedder = await _embedder(settings, parts)
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
    keys = KeyFolder(settings.data / "keys")
    equipment = Equipment(parts.tools, lambda plan: _sources(database.result(), plan, parts, stack))
    clock = parts.clock or system_clock
    chosen = parts.plan if isinstance(parts.plan, str) else settings.plan
    in_force = (
        OneDraft(draft, equipment)
        if draft
        else SignedPlans(chosen, database.result(), keys, clock, equipment, to_look=parts.to_look)
    )
    plan, revision = await in_force.first(parts.tenant or settings.tenant)
    toolbox, sources = equipment.of(plan)
    services = Services(
        settings=settings,
        plan=plan,
        revision=revision,
        model=model.result(),
        database=database.result(),
        index=index.result(),
        embedder=embedder,
        counter=counter.result(),
        factor=factor,
        sources=sources,
        calendar=MarketCalendar(CalendarCache(settings.data / "calendars")),
        clock=clock,
        toolbox=toolbox,
        stores=_stores(settings, parts, database.result(), index.result(), stack),
        keys=keys,
        app_tools=parts.tools,
        in_force=in_force,
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


async def _draft(settings: Settings, parts: Parts) -> Plan | None:
    """The unsigned plan that was passed in, or that a file holds; None where signed revisions are in force."""
    if isinstance(parts.plan, Plan):
        return parts.plan
    name = parts.plan or settings.plan
    if not is_file(name):
        return None
    return await asyncio.to_thread(load_draft, name, allowed=settings.drafts)


async def _embedder(settings: Settings, parts: Parts) -> Embedder:
    if parts.embeddings is not None:
        return LangChainEmbedder(parts.embeddings)
    return await asyncio.to_thread(build_embedder, settings)


def _stores(
    settings: Settings, parts: Parts, database: Database, index: VectorIndex, stack: AsyncExitStack
) -> TenantStores:
    """Each works on a loop of its own, so with a pool and an embedder of its own, on the agent's data."""

    conninfo = database.pool.conninfo
    assert isinstance(conninfo, str), "opened from a text"

    async def open_tenant(tenant: str, own: AsyncExitStack) -> Backend:
        opened = await Database.open(conninfo, limits=settings.memory_limits)
        own.push_async_callback(opened.close)
        embedder = await _store_embedder(settings, parts.embeddings)
        return postgres_backend(opened, index, embedder, parts.clock or system_clock, tenant)

    stores = TenantStores(open_tenant)
    stack.push_async_callback(stores.aclose)
    return stores


async def open_store_backend(
    settings: Settings,
    tenant: str,
    embeddings: Embeddings | None,
    clock: Clock | None,
    stack: AsyncExitStack,
) -> Backend:
    """What a tenant's store works on where no agent is open. Raises StoreError; the stack closes what was opened."""
    embedder = await _store_embedder(settings, embeddings)
    await asyncio.to_thread(_make_folder, settings)
    index = await _index(settings, embedder, stack)
    database = await _database(settings, stack)
    return postgres_backend(database, index, embedder, clock or system_clock, tenant)


async def _store_embedder(settings: Settings, embeddings: Embeddings | None) -> Embedder:
    if embeddings is not None:
        return store_embedder(embeddings)
    return await asyncio.to_thread(build_embedder, settings)


async def _index(settings: Settings, embedder: Embedder, stack: AsyncExitStack) -> VectorIndex:
    index = await open_index(settings.data / "chroma", embedder, settings.chroma_url)
    stack.push_async_callback(index.close)
    return index


async def _database(settings: Settings, stack: AsyncExitStack) -> Database:
    database = await Database.open(await _conninfo(settings, stack), limits=settings.memory_limits)
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
        settings.data.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            sentences("data_folder", folder=settings.data, reason=system_reason(error))
        ) from None


def _sources(database: Database, plan: Plan, parts: Parts, stack: AsyncExitStack) -> Sources:
    chosen = chosen_sources(plan.sources, platform_sources(database))
    clock = parts.clock or system_clock
    sources = Sources([*chosen, *parts.sources], clock=clock, settings=plan.sources)
    stack.push_async_callback(sources.close)
    return sources
