"""The demos' tenants and their clock: the scenes play in December 2025, and so does whoever looks at them later."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from recuerdo.demo.scenes import load_script

DEMO_TENANT = "demo"
MEMORY_TENANT = "demo-memory"

ON_A_CLOCK_OF_THEIR_OWN = (DEMO_TENANT, MEMORY_TENANT)
"""Tenants whose dates are not ours: by our clock, what they remember has expired."""


def running_from(start: datetime) -> Callable[[], datetime]:
    """A clock that shows ``start`` now and runs on from there."""
    began = time.monotonic()
    return lambda: start + timedelta(seconds=time.monotonic() - began)


def clock_of(tenant: str) -> Callable[[], datetime] | None:
    """The clock of a tenant that has one of its own: the demo's stands at its last visit. None: the real one."""
    if tenant != DEMO_TENANT:
        return None
    return running_from(max(visit.at for scene in load_script().scenes for visit in scene.visits))
