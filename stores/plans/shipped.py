"""The plans that ship, and reading a draft by its name or from a YAML file."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from recuerdo.state.errors import SettingsError
from recuerdo.state.os_errors import system_reason
from recuerdo.state.plan import Plan, read_plan
from recuerdo.state.sentences import load_sentences

sentences = load_sentences(__package__)

_SUFFIXES = {".yaml", ".yml"}


def shipped_plans() -> list[str]:
    """Names of the plans that ship with Recuerdo."""
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in files(__package__).iterdir()
        if entry.name.endswith(".yaml") and not entry.name.endswith("sentences.yaml")
    )


def is_file(plan: str) -> bool:
    """Whether ``plan`` names a YAML file rather than a plan."""
    return Path(plan).suffix in _SUFFIXES


def load_plan(plan: str) -> Plan:
    """The draft of the shipped plan of that name, or the one in that ``.yaml`` file.

    Raises SettingsError when there is no such plan or file, or when it is not valid.
    """
    if plan in shipped_plans():
        return read_plan((files(__package__) / f"{plan}.yaml").read_text(encoding="utf-8"), plan)
    if not is_file(plan):
        raise SettingsError(sentences("plan_unknown", plan=plan, known=", ".join(shipped_plans())))
    try:
        return read_plan(Path(plan).expanduser().read_text(encoding="utf-8"), plan)
    except (OSError, UnicodeDecodeError) as error:
        reason = system_reason(error) if isinstance(error, OSError) else "UTF-8"
        raise SettingsError(sentences("plan_unreadable", plan=plan, reason=reason)) from None


def load_draft(plan: str, *, allowed: bool) -> Plan:
    """The draft in a YAML file, where drafts may run. Raises SettingsError as :func:`load_plan`, or where not."""
    draft = load_plan(plan)
    if not allowed:
        raise SettingsError(sentences("plan_unsigned", plan=plan))
    return draft


def shipped_packs(plan: str) -> list[Traversable]:
    """The folders of knowledge packs that ship with a plan, by name."""
    folder = files("recuerdo.stores") / "packs_samples" / plan
    if not folder.is_dir():
        return []
    return sorted((entry for entry in folder.iterdir() if entry.is_dir()), key=lambda entry: entry.name)
