"""What is remembered of a user: as a list with numbers, as plain data, and forgetting one item of it (IM-43)."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rich.console import Group, RenderableType
from rich.table import Table

from recuerdo.agent import Agent
from recuerdo.cli.console import plain_text, say, sentences
from recuerdo.nodes.update_memory.preference_values import like
from recuerdo.state.errors import InputError
from recuerdo.state.levels import EPISODIC
from recuerdo.stores.postgres.memories import StoredMemory
from recuerdo.stores.postgres.preferences import Preference
from recuerdo.stores.postgres.symbols import Interest


@dataclass(frozen=True)
class Remembered:
    """All that is in force of one user; items are numbered from 1: preferences by key, then memories."""

    user: str
    preferences: dict[str, Preference]
    memories: list[StoredMemory]
    symbols: list[Interest]

    @classmethod
    def read(cls, agent: Agent, user: str) -> "Remembered":
        """Read it from the agent's stores."""
        return agent.run_sync(cls._read(agent, user))

    @classmethod
    async def _read(cls, agent: Agent, user: str) -> "Remembered":
        memory = agent.memory
        return cls(
            user,
            await memory.preferences(user=user),
            list(await memory.list(user=user)),
            list(await memory.symbols(user=user)),
        )

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "user": self.user,
            "preferences": [vars(preference) for preference in self.preferences.values()],
            "memories": [vars(memory) for memory in self.memories],
            "symbols": [vars(interest) for interest in self.symbols],
        }

    def view(self) -> RenderableType:
        """A table with the items' numbers."""
        if not (self.preferences or self.memories or self.symbols):
            return plain_text(say("memory_empty", user=self.user))
        return Group(self._items(), self._symbols())

    def _items(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("#", justify="right")
        for key in ("column_level", "column_kind", "column_content", "column_until"):
            table.add_column(say(key), overflow="fold")
        for preference in self.preferences.values():
            content = plain_text(f"{preference.key} = {_shown(preference.value)}")
            until = preference.expires_at.date().isoformat()
            number, level = str(table.row_count + 1), str(preference.level)
            table.add_row(number, level, say("kind_preference"), content, until)
        for memory in self.memories:
            until = memory.expires_at.date().isoformat() if memory.expires_at else "-"
            number, level = str(table.row_count + 1), str(memory.level)
            table.add_row(number, level, memory.kind, plain_text(memory.text), until)
        return table

    def _symbols(self) -> RenderableType:
        listed = ", ".join(f"{interest.symbol} ({interest.count})" for interest in self.symbols) or "-"
        return plain_text(say("memory_symbols", level=EPISODIC, symbols=listed), "dim")

    def forget(self, agent: Agent, item: str) -> str:
        """Forget the item of that number, preference key or memory id; returns what it was.

        Raises InputError when there is no such item.
        """
        key = self._key(item)
        if key in self.preferences:
            agent.run_sync(agent.memory.forget_preference(key, user=self.user))
        else:
            agent.run_sync(agent.memory.forget(UUID(key), user=self.user))
        return key

    def correct(self, agent: Agent, item: str, text: str) -> str:
        """Give the item of that number, preference key or memory id another value; returns which it was.

        Raises InputError when there is no such item, or for a text that cannot be.
        """
        key = self._key(item)
        if key in self.preferences:
            value = like(self.preferences[key].value, key, text)
            agent.run_sync(agent.memory.correct_preference(key, value, user=self.user))
        else:
            agent.run_sync(agent.memory.update(UUID(key), text, user=self.user))
        return key

    def why(self, agent: Agent, item: str) -> dict[str, Any]:
        """Why the item of that number, preference key or memory id is remembered, as plain data.

        Raises InputError when there is no such item.
        """
        key = self._key(item)
        if key in self.preferences:
            return vars(self.preferences[key])
        reasons = agent.run_sync(agent.memory.why(UUID(key), user=self.user))
        if reasons is None:
            raise InputError(sentences("memory_item_unknown", item=item[:60]))
        return {
            **vars(reasons.memory),
            "said": reasons.message.content if reasons.message else None,
            "history": [f"{old.at.date()}: {old.text}" for old in reasons.history],
            "published": [f"{p.at.date()} {p.action} {p.actor}: {p.reason}" for p in reasons.publications],
            "audit": [f"{entry.at.date()} {entry.action} {entry.actor}" for entry in reasons.audit],
        }

    def _key(self, item: str) -> str:
        keys = [*self.preferences, *(str(memory.id) for memory in self.memories)]
        key = keys[int(item) - 1] if item.isdecimal() and 0 < int(item) <= len(keys) else item
        if key not in keys:
            raise InputError(sentences("memory_item_unknown", item=item[:60]))
        return key


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
