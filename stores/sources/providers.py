"""Which source a plan gets for each kind of data that it names, by the provider that it chose."""

from collections.abc import Callable, Iterable, Mapping

from recuerdo.state.errors import SettingsError
from recuerdo.state.plan import SourceSettings
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.sources.historical import sample_quotes
from recuerdo.stores.sources.live.combined import live_quotes
from recuerdo.stores.sources.live.crypto import crypto_quotes
from recuerdo.stores.sources.live.us_stocks import us_stock_quotes
from recuerdo.stores.sources.registry import Source

sentences = load_sentences(__package__)

TABLE = "table"

OTHER_PROVIDERS: Mapping[tuple[str, str], Callable[[], Source]] = {
    ("quotes", "sample"): sample_quotes,
    ("quotes", "ccxt"): crypto_quotes,
    ("quotes", "alpaca"): us_stock_quotes,
    ("quotes", "live"): live_quotes,
}
"""What builds a source, by its name and the provider's. A further one is one line here."""


def chosen_sources(wanted: Mapping[str, SourceSettings], tables: Iterable[Source]) -> list[Source]:
    """The sources that ``wanted`` names; ``tables`` are those of the provider "table".

    Raises SettingsError for a kind or a provider that does not exist.
    """
    by_provider: dict[tuple[str, str], Callable[[], Source]] = {
        (source.name, TABLE): lambda source=source: source  # type: ignore[misc]
        for source in tables
    }
    return [
        _chosen(name, settings.provider, {**by_provider, **OTHER_PROVIDERS})
        for name, settings in wanted.items()
    ]


def _chosen(name: str, provider: str, known: Mapping[tuple[str, str], Callable[[], Source]]) -> Source:
    if (name, provider) in known:
        return known[name, provider]()
    providers = [other for kind, other in known if kind == name]
    if not providers:
        kinds = ", ".join(dict.fromkeys(kind for kind, _ in known))
        raise SettingsError(sentences("source_unknown", name=name, known=kinds))
    raise SettingsError(
        sentences("source_provider_unknown", name=name, provider=provider, known=", ".join(providers))
    )
