"""Reads a text for what may be sensitive in it: sure findings by form and check digits, candidates by their words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recuerdo.state.folding import folded, plain, unaccented
from recuerdo.stores.sensitive.amounts import amounts
from recuerdo.stores.sensitive.cues import Decider, Opinion
from recuerdo.stores.sensitive.features import Context, Group, grouped
from recuerdo.stores.sensitive.identifiers import identifiers
from recuerdo.stores.sensitive.numbers import card_and_bank_numbers, spoken_numbers
from recuerdo.stores.sensitive.rules import Finding, load_rules, seed_label
from recuerdo.stores.sensitive.secrets import odd_words, secret_phrases
from recuerdo.stores.sensitive.seed import seed_phrases
from recuerdo.stores.sensitive.vocabulary import Candidate, kind_named

MASK = "[***]"
# One character of a mask while a text is read: no letter, no digit, no space.
TAKEN = "\ue000"


@dataclass(frozen=True)
class Described:
    """A candidate with all that holds for it."""

    group: Group
    features: Iterator[str]

    @property
    def start(self) -> int:
        """Where it begins."""
        return self.group.start

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.group.end


@dataclass(frozen=True)
class Reading:
    """One reading of a text. ``layers``: candidates that are each other's context; layers may overlap."""

    plain_text: str
    folded_text: str
    sure: Sequence[Finding]
    layers: Sequence[Sequence[Group]]

    def candidates(self) -> Iterator[Described]:
        """All that is to be decided on."""
        for groups in self.layers:
            context = Context(self.plain_text, self.folded_text, groups)
            for index, group in enumerate(groups):
                yield Described(group, context.features(index))


def read(text: str) -> Reading:
    """Read an NFC text; ``MASK`` stands for what was taken out before."""
    plain_text = plain(text.replace(MASK, TAKEN * len(MASK)))
    folded_text, cased_text = folded(plain_text), unaccented(plain_text)
    sure: list[Finding] = [
        (start, end, kind_named(kind)) for start, end, kind in card_and_bank_numbers(plain_text)
    ]
    sure += [
        (start, end, "seed_phrase") for start, end in seed_phrases(plain_text, folded_text, seed_label())
    ]
    sure += [(start, end, "card") for start, end in spoken_numbers(folded_text)]
    phrases = [Opinion(one, None, frozenset()) for one in secret_phrases(folded_text)]
    for rule in load_rules():
        for start, end, kind in rule.found(folded_text if rule.folded else cased_text):
            if rule.name:
                phrases.append(Opinion(Candidate(start, end, "said"), kind, frozenset([f"rule={rule.name}"])))
            else:
                sure.append((start, end, kind))
    words = [*identifiers(folded_text), *amounts(folded_text, cased_text), *odd_words(cased_text)]
    decided = list(Decider(folded_text, plain_text).opinions(words)) if words else []
    layers = [grouped(opinions) for opinions in (decided, phrases) if opinions]
    return Reading(plain_text, folded_text, sure, layers)
