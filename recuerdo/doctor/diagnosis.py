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
    """The findings, what to check first standing first; all of them are told, the good ones too."""

    symptom: Symptom | None
    findings: Sequence[Finding]

    @property
    def suspects(self) -> list[Finding]:
        """The findings that may be the cause, in order."""
        return [found for found in self.findings if not found.ok]

    def as_data(self) -> dict[str, Any]:
        """As JSON data, texts in both languages."""
        return {"symptom": self.symptom, "findings": [found.as_data() for found in self.findings]}


async def diagnose(patient: Patient, symptom: str | None) -> Diagnosis:
    """Look for what may cause ``symptom``; None: at the health of the whole. Changes nothing.

    Raises InputError for an unknown symptom or conversation, StoreError when the database does not answer.
    """
    if symptom is None:
        return Diagnosis(None, await health(patient))
    for name in NAMES:
        if name == symptom:
            return Diagnosis(name, await SYMPTOMS[name](await patient.examined()))
    raise InputError(sentences("symptom_unknown", symptom=str(symptom)[:60], known=", ".join(NAMES)))
