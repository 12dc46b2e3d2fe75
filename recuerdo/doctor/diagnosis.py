"""What the doctor is asked and what he answers: the findings of one symptom in order, or of the whole house."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from recuerdo.doctor.finding import Finding, sentences
from recuerdo.doctor.health import health
from recuerdo.doctor.patient import Patient
from recuerdo.doctor.symptoms import SYMPTOMS
from recuerdo.state.errors import InputError

Symptom = Literal[
    "no_last_round", "tool_forgotten", "event_not_found", "event_tools_missing", "event_parameter_error"
]

NAMES: Final[tuple[Symptom, ...]] = get_args(Symptom)


@dataclass(frozen=True)
class Diagnosis:
    """The findings, what to check first standing first; all of them are told, the good ones too.

    ``answers`` are those to each of the symptoms, where a conversation or a user was looked at without naming one;
    the findings are theirs then, each once.
    """

    symptom: Symptom | None
    findings: Sequence[Finding]
    answers: Sequence["Diagnosis"] = ()

    @property
    def suspects(self) -> list[Finding]:
        """The findings that may be the cause, in order."""
        return [found for found in self.findings if not found.ok]

    def as_data(self) -> dict[str, Any]:
        """As JSON data, texts in both languages."""
        data = {"symptom": self.symptom, "findings": [found.as_data() for found in self.findings]}
        return {**data, "answers": [answer.as_data() for answer in self.answers]} if self.answers else data


async def diagnose(patient: Patient, symptom: str | None) -> Diagnosis:
    """Look for what may cause ``symptom``; None: at every symptom of the conversation or the user that is named, and
    without either at the health of the whole. Changes nothing.

    Raises InputError for an unknown symptom or conversation, StoreError when the database does not answer.
    """
    if symptom is None and patient.conversation is None and patient.user is None:
        return Diagnosis(None, await health(patient))
    if symptom is None:
        return await _every_symptom(await patient.examined())
    for name in NAMES:
        if name == symptom:
            return Diagnosis(name, await SYMPTOMS[name](await patient.examined()))
    raise InputError(sentences("symptom_unknown", symptom=str(symptom)[:60], known=", ".join(NAMES)))


async def _every_symptom(patient: Patient) -> Diagnosis:
    answers = [Diagnosis(name, await SYMPTOMS[name](patient)) for name in NAMES]
    once = {found.name: found for answer in reversed(answers) for found in reversed(answer.findings)}
    return Diagnosis(None, list(reversed(once.values())), answers)
