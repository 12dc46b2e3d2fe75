"""User-visible sentences in Spanish and English, kept in a YAML file beside the code that says them."""

from dataclasses import dataclass
from functools import cache

from recuerdo.state.tables import read_table


@dataclass(frozen=True)
class Sentence:
    """One sentence in both languages; ``{name}`` places are filled by :meth:`with_values`."""

    es: str
    en: str

    def with_values(self, **values: object) -> "Sentence":
        """Fill the places in both languages; a value that is itself a sentence is said in each."""
        return Sentence(self.es.format(**_said(values, "es")), self.en.format(**_said(values, "en")))

    def in_language(self, language: str | None) -> str:
        """The text in ``language``; English for anything but Spanish."""
        return self.es if (language or "").startswith("es") else self.en


def _said(values: dict[str, object], language: str) -> dict[str, object]:
    return {
        name: value.in_language(language) if isinstance(value, Sentence) else value
        for name, value in values.items()
    }


class Sentences:
    """The sentences of one package: ``sentences("key", place=value)`` gives a :class:`Sentence`."""

    def __init__(self, table: dict[str, Sentence]) -> None:
        self._table = table

    def __call__(self, key: str, /, **values: object) -> Sentence:
        """The sentence ``key`` with its places filled. An unknown key is a fault of ours: KeyError."""
        sentence = self._table[key]
        return sentence.with_values(**values) if values else sentence

    def __contains__(self, key: str) -> bool:
        """Whether there is a sentence ``key``."""
        return key in self._table


@cache
def load_sentences(package: str, name: str = "sentences.yaml") -> Sentences:
    """Read ``name`` from ``package``: a mapping of key to ``{es: ..., en: ...}``."""
    raw = read_table(package, name)
    return Sentences({key: Sentence(es=texts["es"], en=texts["en"]) for key, texts in raw.items()})
