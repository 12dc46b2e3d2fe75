"""Agents on the run's PostgreSQL server, with the platform data of CARLOS."""

import io
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from recuerdo.agent import Agent
from recuerdo.cli import main
from tests.recuerdo.carlos import House, SettableClock, seed
from tests.recuerdo.command import Command, Result

OpenAgent = Callable[..., Awaitable[Agent]]

VARIABLES = (
    "DATABASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "RECUERDO_ACTOR",
    "RECUERDO_MODEL",
    "RECUERDO_PLAN",
)


@pytest.fixture(autouse=True)
def no_settings_of_the_tester(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RECUERDO_DATA", str(tmp_path / "data"))


@pytest.fixture
def run_recuerdo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """Runs ``recuerdo`` in this process, without a terminal, in English."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    def run_main(*arguments: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "argv", ["recuerdo", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return Result(int(ended.value.code or 0), *capsys.readouterr())

    yield run_main
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture(scope="session")
def calendars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exchanges' sessions, worked out once for the whole run."""
    return tmp_path_factory.mktemp("calendars")


@pytest.fixture
def house(database_url: str, tmp_path: Path, clock: SettableClock, calendars: Path) -> House:
    data = tmp_path / "data"
    data.mkdir()
    (data / "calendars").symlink_to(calendars, target_is_directory=True)
    return House(database_url, data, clock)


@pytest.fixture
async def open_agent(house: House) -> AsyncIterator[OpenAgent]:
    """Opens agents that know CARLOS and close with the test."""
    async with AsyncExitStack() as stack:

        async def opened(**parts: Any) -> Agent:
            agent = await stack.enter_async_context(house.open(**parts))
            await seed(agent)
            return agent

        yield opened


@pytest.fixture
async def agent(open_agent: OpenAgent) -> Agent:
    """An agent with the offline responder, which quotes its prompt."""
    return await open_agent()
