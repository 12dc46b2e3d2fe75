"""The health of a deployment: database, isolation, index, embedder, model, worker, disk."""

import asyncio
import shutil
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from recuerdo.doctor.finding import Finding, finding
from recuerdo.doctor.patient import Patient
from recuerdo.nodes.call_llm.model import DEFAULT_MODEL, check_model, model_name
from recuerdo.nodes.call_llm.offline import OfflineResponder
from recuerdo.state.errors import SettingsError
from recuerdo.stores.postgres.diagnosis import (
    DatabaseFacts,
    JobFacts,
    WaitingFacts,
    database_facts,
    job_facts,
    waiting_facts,
)

OVERDUE = timedelta(minutes=15)
"""How late a job of the worker may be before it seems that no worker runs."""

LITTLE_SPACE = 1_000_000_000
"""Free bytes of the data folder below which the disk is a finding."""


async def health(patient: Patient) -> Sequence[Finding]:
    """Every finding of the house, in the order of what everything else stands on."""
    services = patient.services
    facts = await database_facts(services.database)
    jobs = await job_facts(services.database)
    waiting = await waiting_facts(services.database, patient.tenant, services.embedder.name)
    now = services.clock()
    return [
        _migrations(facts),
        finding(
            "isolation",
            not facts.bypasses_isolation,
            {"role": facts.role, "bypasses": facts.bypasses_isolation},
        ),
        finding("pooler", True, facts.pooled),
        await _index(patient),
        _embedder(patient, waiting),
        _model(patient),
        _worker(jobs, now),
        _vectors(waiting),
        _unread(patient, waiting),
        finding("preview", patient.mode == "live", patient.mode),
        await asyncio.to_thread(_disk, services.settings.data),
    ]


def _migrations(facts: DatabaseFacts) -> Finding:
    value = {"server": facts.version, "migration": facts.migration, "newest": facts.newest_migration}
    return finding("database", facts.migration == facts.newest_migration, {**value, "bytes": facts.bytes})


async def _index(patient: Patient) -> Finding:
    index = patient.services.index
    away = index.unavailable
    vectors = None if away else await index.count(patient.tenant, patient.assistant)
    return finding("index", not away, {"available": not away, "vectors": vectors})


def _embedder(patient: Patient, waiting: WaitingFacts) -> Finding:
    embedder = patient.services.embedder
    value = {"name": embedder.name, "dimensions": embedder.dimensions, "other": waiting.foreign_vectors}
    return finding("embedder", not waiting.foreign_vectors, value)


def _model(patient: Patient) -> Finding:
    """The model that answers. Where none was opened, as from the command line, what the settings name."""
    model, settings = patient.services.model, patient.services.settings
    if not isinstance(model, OfflineResponder):
        return finding("model", True, model_name(model) or model._llm_type)
    try:
        named = None if check_model(settings) is None else settings.model or DEFAULT_MODEL
    except SettingsError as error:
        return finding("model", False, str(error))
    return finding("model", named is not None, named)


def _worker(jobs: Sequence[JobFacts], now: datetime) -> Finding:
    late = [job.name for job in jobs if job.due_at < now - OVERDUE]
    runs = {job.name: _instant(job.last_run_at) for job in jobs}
    return finding("worker", bool(jobs) and not late, {"last_runs": runs, "late": late})


def _vectors(waiting: WaitingFacts) -> Finding:
    value = {"waiting": waiting.vectors, "since": _instant(waiting.vectors_since)}
    return finding("vectors", not waiting.vectors, value)


def _unread(patient: Patient, waiting: WaitingFacts) -> Finding:
    value = {"turns": waiting.unread_turns, "since": _instant(waiting.unread_since)}
    idle = timedelta(minutes=patient.plan.key_events.extraction.idle_minutes)
    old = (
        waiting.unread_since is not None and waiting.unread_since < patient.services.clock() - idle - OVERDUE
    )
    return finding("unread", not old, value)


def _disk(folder: Path) -> Finding:
    usage = shutil.disk_usage(folder)
    value: dict[str, Any] = {"folder": str(folder), "free_bytes": usage.free, "total_bytes": usage.total}
    return finding("disk", usage.free >= LITTLE_SPACE, value)


def _instant(instant: datetime | None) -> str | None:
    return instant.isoformat() if instant else None
