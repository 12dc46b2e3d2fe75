"""What a user can cause, as errors that say in one sentence what to do."""

from recuerdo.state.sentences import Sentence


class RecuerdoError(Exception):
    """Base of every error that a user or an operator can cause; never shown with a traceback.

    ``sentence`` holds the text in Spanish and English; ``str(error)`` is the English one.
    """

    def __init__(self, sentence: Sentence) -> None:
        super().__init__(sentence.en)
        self.sentence = sentence

    def __reduce__(self) -> tuple[type["RecuerdoError"], tuple[Sentence]]:
        return type(self), (self.sentence,)


class SettingsError(RecuerdoError):
    """A setting, a plan or a file of the user's is wrong or cannot be used."""


class InputError(RecuerdoError):
    """The message or an argument of the call cannot be taken."""


class ElsewhereError(InputError):
    """What is asked for can only be done by another application, which brings what it takes."""


class StoreError(RecuerdoError):
    """A place where things are kept cannot be opened or does not answer."""


class ScopeError(RecuerdoError):
    """The caller did not say, or may not touch, whose data it asks for."""


class BusyError(RecuerdoError):
    """Another turn of the same thread is running."""


class ModelError(RecuerdoError):
    """The model cannot be reached, refused the call, or broke off."""


class BudgetError(RecuerdoError):
    """Critical content alone is larger than the hard limit of the request (RF-34)."""
