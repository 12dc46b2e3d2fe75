"""Instants carry their zone: a naive one would be read in the zone of whatever machine the server runs on."""

from datetime import datetime

from recuerdo.state.errors import InputError
from recuerdo.state.sentences import load_sentences

_sentences = load_sentences(__package__, "memory_sentences.yaml")


def require_aware(instant: datetime) -> datetime:
    """``instant``; raises InputError for one without a zone."""
    if instant.utcoffset() is None:
        raise InputError(_sentences("time_naive", instant=instant.isoformat()))
    return instant
