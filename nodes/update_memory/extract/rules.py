"""The extractor that needs no model: rules for Spanish and English (RF-7 to RF-11, RF-54)."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby

from recuerdo.nodes.update_memory.command import commanded_text
from recuerdo.nodes.update_memory.extract.clauses import (
    Clause,
    joined,
    normalised,
    own_clauses,
    own_sentences,
)
from recuerdo.nodes.update_memory.extract.facts import (
    forgotten,
    is_over,
    is_passing,
    is_passing_state,
    leans_on_another,
    may_teach,
    names_what_was_said,
    read_fact,
    read_reminder,
    says_what_is_now,
    slot_of,
)
from recuerdo.nodes.update_memory.extract.preferences import (
    FOLLOWED,
    NOTIFICATION_STYLES,
    Verdict,
    has,
    mentioned_preferences,
    read_preferences,
)
from recuerdo.nodes.update_memory.extract.protocol import Extracted, Item, Said
from recuerdo.nodes.update_memory.extract.symbols import read_symbols
from recuerdo.nodes.update_memory.extract.verdicts import Verdicts

_POINTING = ("it", "that", "this", "lo", "eso", "esto", "now")
# A clause that says by a pronoun what the one before it names: "the legal line is clutter, leave it out".
_REFERS = re.compile(
    r"\b(?:it|them|(?:those|these)(?! days)|that|they|everything|todo|ahi|es[eo]s?|esas?|asi)\b|\b(?:me|te"
    r"|nos|se|no|ya) (?:lo|la|los|las)\b"
    r"|\b\w{2,}[aeinr](?:me)?l[oa]s?\b|^(?:con|en|with|in) "
)
# What stands between two clauses of one thought.
_BETWEEN = re.compile(
    r"[\s,:;()–—-]*(?:(?:and|y|e|but|pero|so|asi que|because|porque|since|que|por eso|also|tambien|aunque"
    r"|although|ya que)"
    r"\s*)*[\s,]*"
)
_LONGEST_THOUGHT = 300


class RulesExtractor:
    """Reads a message clause by clause. The first reader that makes something of a clause has it."""

    async def extract(self, said: Said) -> Extracted:
        """What the message teaches; off the loop, as a long message takes a while."""
        return await asyncio.to_thread(read_message, said)


def read_message(said: Said) -> Extracted:
    """What ``said.text`` teaches, by the rules alone."""
    verdicts = Verdicts()
    if commanded := commanded_text(said.text):
        return Extracted([Item("fact", "note", commanded, commanded)])
    reminded = {}
    for sentence, folded_sentence in own_sentences(said.text):
        if reminder := read_reminder(sentence, folded_sentence):
            reminded[folded_sentence] = reminder
            verdicts.learn(reminder)
    clauses = [clause for clause in own_clauses(said.text) if clause.sentence not in reminded]
    for _, together in groupby(clauses, key=lambda clause: clause.sentence):
        _Sentence(list(together), said).read(verdicts)
    return verdicts.extracted()


@dataclass
class _Sentence:
    """One sentence being read: what was made of which of its clauses."""

    clauses: Sequence[Clause]
    said: Said
    taken: set[int] = field(default_factory=set)
    facts: list[tuple[Clause, Item]] = field(default_factory=list)

    @cached_property
    def of_the_moment(self) -> bool:
        """ "Keep it short, I'm in a hurry" is meant for this once."""
        return any(is_passing_state(clause.folded) for clause in self.clauses)

    def read(self, verdicts: Verdicts) -> None:
        """Wishes first, then what is over, then facts: a fact gives only the reason for a wish that it leans on."""
        self._read_wishes(verdicts)
        for number, clause in enumerate(self.clauses):
            if number not in self.taken:
                self._read_statement(number, clause, verdicts)
        for item in self._thoughts():
            verdicts.learn(item)

    def _read_wishes(self, verdicts: Verdicts) -> None:
        for number, clause in enumerate(self.clauses):
            before = self.clauses[number - 1] if number else None
            if found := self._wish(clause):
                self.taken.add(number)
            elif before and _REFERS.search(clause.folded):
                found = self._wish(joined(before, clause, self.said.text))
                self.taken.update((number - 1, number) if found else ())
            for verdict, item in found:
                verdicts.add(verdict, self._of_its_topic(item, number))

    def _of_its_topic(self, item: Item, number: int) -> Item:
        """ "Only notify me when it matters, one line": the style is that of what the sentence is about."""
        about = " ".join(one.folded for one in self.clauses[:number])
        is_of_notifications = item.key == "communication_style" and item.value in NOTIFICATION_STYLES
        if is_of_notifications and has("notification", about) and not has("answering", item.quote.lower()):
            return replace(item, key="notification_style")
        return item

    def _wish(self, clause: Clause) -> list[Verdict]:
        # What one of his people wants is a fact of the user at most.
        if clause.of_others or (self.of_the_moment and not clause.for_good):
            return []
        return read_preferences(clause, self.said) or read_symbols(
            clause, self.clauses, self.said.preferences.get(FOLLOWED) or ()
        )

    def _read_statement(self, number: int, clause: Clause, verdicts: Verdicts) -> None:
        following = self.clauses[number + 1] if number + 1 < len(self.clauses) else None
        if change := self._change(number, clause, following):
            self.facts.append((replace(clause, end=clause.start + len(change.value)), change))
            verdicts.forget(Item("fact", "fact", change.value.lower(), clause.text))
            return
        # "Drop the exclamation marks, always" asks for something.
        if not clause.for_good and (what := forgotten(clause)):
            _forget(self._meant(what, clause), clause, self.said, verdicts)
            return
        found = self._fact(number, clause)
        self.facts += [(clause, item) for item in found]
        if is_over(clause):
            verdicts.forget(Item("fact", "fact", clause.folded, clause.text, clause.confidence))
        elif not found and not self._leans(number, clause) and may_teach(clause):
            verdicts.unread += 1

    def _fact(self, number: int, clause: Clause) -> list[Item]:
        if names_what_was_said(clause.folded) and number and number - 1 not in self.taken:
            both = joined(self.clauses[number - 1], clause, self.said.text)
            self.facts = [(one, item) for one, item in self.facts if one.end <= both.start]
            return [Item("fact", "fact", both.text, both.text, both.confidence, both.restated)]
        return [] if self._leans(number, clause) else read_fact(clause)

    def _leans(self, number: int, clause: Clause) -> bool:
        return leans_on_another(clause.folded, after_wish=any(taken < number for taken in self.taken))

    def _change(self, number: int, clause: Clause, following: Clause | None) -> Item | None:
        """ "It is not A any more, now it is B": one fact, which takes the place of the old one."""
        if not is_over(clause) or is_passing(clause.folded):
            return None
        if says_what_is_now(clause.folded):
            return Item("fact", "fact", clause.whole, clause.whole, clause.confidence)
        if following is None or number + 1 in self.taken or not says_what_is_now(following.folded):
            return None
        self.taken.add(number + 1)
        both = normalised(self.said.text)[clause.start : following.end]
        return Item("fact", "fact", both, both, min(clause.confidence, following.confidence))

    def _meant(self, what: str, clause: Clause) -> str:
        before = [one.folded for one in self.clauses if one.end <= clause.start]
        return before[-1] if what in _POINTING and before else what

    def _thoughts(self) -> list[Item]:
        """The facts, those of one thought as one; but two things that each have one value stay apart."""
        thoughts: list[tuple[Clause, Item]] = []
        for clause, item in self.facts:
            if thoughts and (both := self._as_one(thoughts[-1], (clause, item))):
                thoughts[-1] = both
            elif not (thoughts and clause.end <= thoughts[-1][0].end):
                thoughts.append((clause, item))
        return [item for _, item in thoughts]

    def _as_one(self, one: tuple[Clause, Item], other: tuple[Clause, Item]) -> tuple[Clause, Item] | None:
        (before, first), (clause, second) = one, other
        text = normalised(self.said.text)
        ends = max(before.end, before.start + len(str(first.value)))
        if clause.start < ends or not _BETWEEN.fullmatch(text[ends : clause.start].lower()):
            return None
        slots = slot_of(str(first.value)), slot_of(str(second.value))
        whole = text[before.start : clause.start + len(str(second.value))]
        if (all(slots) and slots[0] != slots[1]) or len(whole) > _LONGEST_THOUGHT:
            return None
        confidence = min(first.confidence, second.confidence)
        restated = first.restated or second.restated
        return replace(before, end=before.start + len(whole)), Item(
            "fact", "fact", whole, whole, confidence, restated
        )


def _forget(what: str, clause: Clause, said: Said, verdicts: Verdicts) -> None:
    named = list(mentioned_preferences(what, said))
    for item in named:
        verdicts.forget(Item(item.type, item.key, item.value, clause.text))
    if not named:
        verdicts.forget(Item("fact", "fact", what, clause.text))
