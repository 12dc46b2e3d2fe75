"""The doctor: why something seems forgotten, and how a deployment is (LA-6, LA-16, LA-33, IM-11)."""

from recuerdo.doctor.diagnosis import Diagnosis, Symptom, diagnose
from recuerdo.doctor.finding import Finding
from recuerdo.doctor.patient import Patient

__all__ = ["Diagnosis", "Finding", "Patient", "Symptom", "diagnose"]
