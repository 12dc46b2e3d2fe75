"""The memory panel's settings: short-term memory, full context, key events (LA-1, LA-2, LA-10, LA-17, LA-29).

A changed setting is a draft of the plan: the agent that is open goes on as it was, and the draft acts once an agent
is opened with it, ``recuerdo.open_agent(plan=panel.plan)``, or once it is compiled and activated for the tenant.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import BaseModel, ValidationError

from recuerdo.state.errors import InputError, SettingsError
from recuerdo.state.key_events import hint, removed_types
from recuerdo.state.plan import Plan, first_fault, whole_numbers, with_setting
from recuerdo.state.sentences import Sentence, load_sentences
from recuerdo.state.turn import Mode

_sentences = load_sentences(__package__, "panel_sentences.yaml")

GroupName = Literal["short_term", "full_context", "key_events"]

FULL_CONTEXT: Final = "memory.full_context.rounds"
USUALLY_ENOUGH: Final = 2
"""Rounds of full context above which the panel warns of token growth (LA-17)."""

_PATHS: Final[dict[GroupName, tuple[str, ...]]] = {
    "short_term": ("memory.short_term.enabled", "memory.short_term.rounds"),
    "full_context": (FULL_CONTEXT,),
    "key_events": (
        "key_events.enabled",
        "key_events.types",
        "key_events.injected_max",
        "key_events.inject_resolved",
        "key_events.shared_across_assistants",
        "key_events.closed_days",
        "key_events.extraction.idle_minutes",
        "key_events.extraction.message_threshold",
        "key_events.extraction.model",
        "key_events.extraction.rules",
    ),
}
_NUMBERS: Final = frozenset(
    path for paths in _PATHS.values() for path in paths if path.endswith(("rounds", "_max", "_days"))
) | {"key_events.extraction.idle_minutes", "key_events.extraction.message_threshold"}


@dataclass(frozen=True)
class PanelSetting:
    """One setting: its path in the plan, its label, its value as JSON data, and how the panel shows it.

    ``range`` are the least and the greatest whole number that it takes; None for what is no number.
    """

    path: str
    label: Sentence
    value: Any
    shown: Sentence | None = None
    range: tuple[int, int | None] | None = None


@dataclass(frozen=True)
class PanelGroup:
    """A group of settings with what the panel says of it; ``notices`` are about the present values."""

    name: GroupName
    title: Sentence
    about: Sentence
    settings: tuple[PanelSetting, ...]
    notices: tuple[Sentence, ...]


class Panel:
    """The settings of a plan as the panel shows them. Immutable: a change gives another panel, with its draft."""

    def __init__(self, plan: Plan, mode: Mode = "live", in_force: Plan | None = None) -> None:
        """``in_force`` is the plan that was changed, None: this one is it."""
        self.plan = plan
        self.mode = mode
        self._in_force = in_force or plan

    @property
    def groups(self) -> tuple[PanelGroup, ...]:
        """Short-term memory, full context, key events (LA-1)."""
        return tuple(self._group(name) for name in _PATHS)

    @property
    def notices(self) -> tuple[Sentence, ...]:
        """What holds for the whole panel."""
        return (_sentences("notice_preview"),) if self.mode == "preview" else ()

    def changed(self, changes: Mapping[str, Any]) -> "Panel":
        """The panel with other values, by the settings' paths, such as ``{"memory.full_context.rounds": 2}``.

        All or nothing. Raises SettingsError that names the allowed range and the value that stays, InputError for
        a path that is none of the panel's.
        """
        plan = self.plan
        for path, value in changes.items():
            plan = self._with(plan, path, value)
        return Panel(plan, self.mode, self._in_force)

    def as_data(self) -> dict[str, Any]:
        """Everything as JSON data, texts in both languages."""
        return {
            "plan": self.plan.name,
            "notices": [vars(notice) for notice in self.notices],
            "groups": [_group_data(group) for group in self.groups],
        }

    def _with(self, plan: Plan, path: str, value: Any) -> Plan:
        known = [one for paths in _PATHS.values() for one in paths]
        if path not in known:
            raise InputError(_sentences("no_setting", path=str(path)[:60], known=", ".join(known)))
        try:
            return with_setting(plan, path, value)
        except ValidationError as error:
            _, reason = first_fault(error)
            kept = json.dumps(_value(self.plan, path), ensure_ascii=False)
            raise SettingsError(
                _sentences("refused", label=_label(path), reason=reason, value=kept)
            ) from None

    def _group(self, name: GroupName) -> PanelGroup:
        return PanelGroup(
            name,
            _sentences(f"group_{name}"),
            _sentences(f"about_{name}"),
            tuple(self._setting(path) for path in _PATHS[name]),
            self._notices_of(name),
        )

    def _setting(self, path: str) -> PanelSetting:
        value = _value(self.plan, path)
        shown = _rounds(value) if path in (FULL_CONTEXT, "memory.short_term.rounds") else None
        numbers = whole_numbers(tuple(path.split("."))) if path in _NUMBERS else None
        return PanelSetting(path, _label(path), value, shown, numbers)

    def _notices_of(self, name: GroupName) -> tuple[Sentence, ...]:
        memory = self.plan.memory
        rounds = memory.full_context.rounds
        match name:
            case "full_context":
                return (
                    *([_sentences("notice_token_growth", rounds=rounds)] if rounds > USUALLY_ENOUGH else []),
                    *(
                        [_sentences("notice_without_effect")]
                        if rounds and not memory.short_term.enabled
                        else []
                    ),
                )
            case "key_events":
                missing = hint(self.plan.key_events)
                removed = removed_types(self._in_force, self.plan)
                return (
                    *([_sentences("notice_types_removed", types=", ".join(removed))] if removed else []),
                    *([missing] if missing else []),
                )
            case _:
                return ()


def _label(path: str) -> Sentence:
    return _sentences(f"label_{path}")


def _value(plan: Plan, path: str) -> Any:
    place: Any = plan
    for name in path.split("."):
        place = getattr(place, name)
    return _as_json(place)


def _as_json(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return [_as_json(item) for item in value] if isinstance(value, tuple) else value


def _rounds(rounds: int) -> Sentence:
    """As LA-10 has it."""
    if rounds == 0:
        return _sentences("rounds_off")
    return _sentences("rounds_one") if rounds == 1 else _sentences("rounds_many", rounds=rounds)


def _group_data(group: PanelGroup) -> dict[str, Any]:
    return {
        "name": group.name,
        "title": vars(group.title),
        "about": vars(group.about),
        "settings": [_setting_data(setting) for setting in group.settings],
        "notices": [vars(notice) for notice in group.notices],
    }


def _setting_data(setting: PanelSetting) -> dict[str, Any]:
    return {
        "path": setting.path,
        "label": vars(setting.label),
        "value": setting.value,
        "shown": vars(setting.shown) if setting.shown else None,
        "range": list(setting.range) if setting.range else None,
    }
