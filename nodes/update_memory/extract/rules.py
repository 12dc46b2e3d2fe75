"""The extractor that needs no model: rules for Spanish and English (RF-7 to RF-11, RF-54)."""

import asyncio
from collections.abc import Sequence
from itertools import groupby

from recuerdo.nodes.update_memory.extract.clauses import Clause, normalised, own_clauses, own_sentences
from recuerdo.nodes.update_memory.extract.facts import (
    forgotten,
    is_over,
    may_teach,
    read_fact,
    read_reminder,
    says_what_is_now,
)
from recuerdo.nodes.update_memory.extract.preferences import mentioned_preferences, read_preferences
from recuerdo.nodes.update_memory.extract.protocol import Extracted, Item, Said
from recuerdo.nodes.update_memory.extract.symbols import read_symbols
from recuerdo.nodes.update_memory.extract.verdicts import Verdicts

_POINTING = ("it", "that", "this", "lo", "eso", "esto", "now")


class RulesExtractor:
    """Reads a message clause by clause. The first reader that makes something of a clause has it."""

    async def extract(self, said: Said) -> Extracted:
        """What the message teaches; off the loop, as a long message takes a while."""
        return await asyncio.to_thread(read_message, said)


def read_message(said: Said) -> Extracted:
    """What ``said.text`` teaches, by the rules alone."""
    verdicts = Verdicts()
    reminded = {}
    for sentence, folded_sentence in own_sentences(said.text):
        if reminder := read_reminder(sentence, folded_sentence):
            reminded[folded_sentence] = reminder
            verdicts.learn(reminder)
    clauses = [clause for clause in own_clauses(said.text) if clause.sentence not in reminded]
    for _, together in groupby(clauses, key=lambda clause: clause.sentence):
        _read_sentence(list(together), said, verdicts)
    return verdicts.extracted()


def _read_sentence(clauses: Sequence[Clause], said: Said, verdicts: Verdicts) -> None:
    told = ""
    for number, clause in enumerate(clauses):
        if clause.text in told:
            continue
        after = clauses[number + 1] if number + 1 < len(clauses) else None
        if change := _change(clause, after, said):
            told = change.quote
            verdicts.learn(change)
            verdicts.forget(Item("fact", "fact", clause.folded, clause.text))
        elif _read_clause(clause, clauses, said, verdicts):
            told = clause.whole
        elif may_teach(clause):
            verdicts.unread += 1


def _change(clause: Clause, after: Clause | None, said: Said) -> Item | None:
    """ "It is not A any more, now it is B": one fact, which takes the place of the old one."""
    if not is_over(clause) or read_preferences(clause, said) or read_symbols(clause, ()):
        return None
    if says_what_is_now(clause.folded):
        return Item("fact", "fact", clause.whole, clause.whole, clause.confidence)
    if after is None or not says_what_is_now(after.folded) or read_preferences(after, said):
        return None
    both = normalised(said.text)[clause.start : after.end]
    return Item("fact", "fact", both, both, min(clause.confidence, after.confidence))


def _read_clause(clause: Clause, sentence: Sequence[Clause], said: Said, verdicts: Verdicts) -> bool:
    """Whether something was made of the clause."""
    found = read_preferences(clause, said) or read_symbols(clause, sentence)
    for verdict, item in found:
        verdicts.add(verdict, item)
    if found:
        return True
    # "Drop the exclamation marks, always" asks for something.
    if not clause.for_good and (what := forgotten(clause)):
        before = [one.folded for one in sentence if one.end <= clause.start]
        meant = before[-1] if what in _POINTING and before else what
        _forget(meant, clause, said, verdicts)
        return True
    facts = read_fact(clause)
    for fact in facts:
        verdicts.learn(fact)
    if is_over(clause):
        verdicts.forget(Item("fact", "fact", clause.folded, clause.text, clause.confidence))
        return True
    return bool(facts)


def _forget(what: str, clause: Clause, said: Said, verdicts: Verdicts) -> None:
    named = list(mentioned_preferences(what, said))
    for item in named:
        verdicts.forget(Item(item.type, item.key, item.value, clause.text))
    if not named:
        verdicts.forget(Item("fact", "fact", what, clause.text))
