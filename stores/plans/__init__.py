"""The plans that ship, and loading a plan by its name or from a YAML file."""

from importlib.resources import files
from pathlib import Path

from recuerdo.state.errors import SettingsError
from recuerdo.state.plan import Plan, read_plan
from recuerdo.state.sentences import load_sentences

sentences = load_sentences(__package__)


def shipped_plans() -> list[str]:
    """Names of the plans that ship with Recuerdo."""
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in files(__package__).iterdir()
        if entry.name.endswith(".yaml") and entry.name != "sentences.yaml"
    )


def load_plan(plan: str) -> Plan:
    """The plan of that name, or the one in that ``.yaml`` file.

    Raises SettingsError when there is no such plan or file, or when it is not valid.
    """
    if plan in shipped_plans():
        return read_plan((files(__package__) / f"{plan}.yaml").read_text(encoding="utf-8"), plan)
    path = Path(plan).expanduser()
    if path.suffix not in {".yaml", ".yml"}:
        raise SettingsError(sentences("plan_unknown", plan=plan, known=", ".join(shipped_plans())))
    try:
        return read_plan(path.read_text(encoding="utf-8"), plan)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "UTF-8"
        raise SettingsError(sentences("plan_unreadable", plan=plan, reason=reason)) from None
