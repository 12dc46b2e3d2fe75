"""One thing that the doctor looked at: how it is, why it matters, how to change it."""

from dataclasses import dataclass
from typing import Any

from recuerdo.state.sentences import Sentence, load_sentences

sentences = load_sentences(__package__)


@dataclass(frozen=True)
class Finding:
    """``value`` is the present value as JSON data; ``ok`` whether it explains nothing of what seems wrong."""

    name: str
    ok: bool
    value: Any
    title: Sentence
    why: Sentence
    change: Sentence

    def as_data(self) -> dict[str, Any]:
        """As JSON data, texts in both languages."""
        texts = {name: vars(getattr(self, name)) for name in ("title", "why", "change")}
        return {"name": self.name, "ok": self.ok, "value": self.value, **texts}


def finding(name: str, ok: bool, value: Any, **places: object) -> Finding:
    """A finding with the texts of its name."""
    texts = (sentences(f"{name}_{part}", **places) for part in ("title", "why", "change"))
    return Finding(name, ok, value, *texts)
