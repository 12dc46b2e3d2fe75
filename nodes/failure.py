"""A turn that fails goes on to its last node with the reason in the state: one way out for every failure."""

from recuerdo.state.errors import RecuerdoError
from recuerdo.state.turn import TurnError, TurnUpdate


def failed(error: RecuerdoError) -> TurnUpdate:
    """The state update that ends the turn with this error."""
    return {"error": TurnError(kind=type(error).__name__, es=error.sentence.es, en=error.sentence.en)}
