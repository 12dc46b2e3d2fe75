"""The scripted scenes as typed data."""

from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict

from recuerdo.state.plan import Bilingual
from recuerdo.state.tables import read_table


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Round(_Part):
    """A message of the user with the reply that was written for it."""

    user: str
    assistant: str


class Visit(_Part):
    """One opening of the application: when, who, and what is said in one new conversation.

    ``history`` names a file of rounds that the conversation has before.
    """

    at: AwareDatetime
    user: str
    says: tuple[str, ...]
    history: str | None = None

    def rounds(self) -> tuple[Round, ...]:
        """The rounds before; none without a history."""
        return tuple(map(Round.model_validate, _read(self.history))) if self.history else ()


class Scene(_Part):
    """A scenario of the requirements; ``watch`` says what to look at."""

    requirement: str
    title: Bilingual
    watch: Bilingual
    visits: tuple[Visit, ...]


class Script(_Part):
    """All scenes, and the platform data that they need beside the sample."""

    platform: dict[str, Any]
    scenes: tuple[Scene, ...]

    @property
    def present(self) -> datetime:
        """The instant that the sample data is dated from: the first visit."""
        return self.scenes[0].visits[0].at


def load_script() -> Script:
    """The trading demo."""
    return Script.model_validate(_read("scenarios.yaml"))


def _read(name: str) -> Any:
    return read_table(__package__, name)
