"""The model behind ``call_llm``: what the settings name, else the offline responder."""

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from recuerdo.nodes.call_llm.offline import OfflineResponder
from recuerdo.state.errors import SettingsError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.endpoint import Endpoint
from recuerdo.stores.settings import Settings

sentences = load_sentences(__package__)

# Small, and does not reason: reasoning tokens count as output and could use up the 2,000 of RF-34.
DEFAULT_MODEL = "gpt-4.1-mini"
# The client wants a key; servers on the user's own machines look at none.
_NO_KEY = SecretStr("none")


def build_model(settings: Settings) -> BaseChatModel:
    """The chat model that the settings name (issue 2, point 5).

    With ``OPENAI_API_KEY`` or ``OPENAI_BASE_URL``: an OpenAI-compatible model over chat completions, with
    time-outs and two retries that honour Retry-After. With neither: :class:`OfflineResponder`. Build one per
    event loop, off it (the first call imports the provider's package, about two seconds), and close it with
    :func:`close_model`.

    Raises SettingsError when the base URL cannot be one, or when a model is named and no place to find it.
    """
    endpoint = check_model(settings)
    if endpoint is None:
        return OfflineResponder()
    # Late, for its import time: who uses no such model does not pay for it.
    from recuerdo.nodes.call_llm.completions import connect

    return connect(settings.model or DEFAULT_MODEL, settings.openai_api_key or _NO_KEY, endpoint)


def check_model(settings: Settings) -> Endpoint | None:
    """Where the model of the settings is found; None: none is set. Raises SettingsError as :func:`build_model`."""
    base_url = settings.openai_base_url
    if settings.openai_api_key or base_url:
        return Endpoint.parse(base_url.get_secret_value() if base_url else None)
    if settings.model:
        raise SettingsError(sentences("model_without_endpoint", model=settings.model))
    return None


def model_name(model: BaseChatModel) -> str | None:
    """The name under which the provider knows the model; None for one that has none, as most doubles."""
    # Chat models have no common field for it: most say `model_name`, some `model`.
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    return name if isinstance(name, str) else None


async def close_model(model: BaseChatModel) -> None:
    """Close the connections of a model from :func:`build_model`, in the event loop that used it."""
    # The class that has connections is only known once the provider's package is loaded.
    close = getattr(model, "aclose", None)
    if close:
        await close()
