"""The address of an OpenAI-compatible server, taken apart."""

from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Self
from urllib.parse import SplitResult, unquote, urlsplit

from recuerdo.state.errors import SettingsError
from recuerdo.state.sentences import load_sentences

sentences = load_sentences(__package__)

OPENAI_URL = "https://api.openai.com/v1"


@dataclass(frozen=True)
class Endpoint:
    """A base URL without its password, which is kept beside it: URLs stand in logs."""

    url: str
    host: str
    credentials: tuple[str, str] | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, base_url: str | None) -> Self:
        """Take ``OPENAI_BASE_URL`` apart; OpenAI's own address for None. Raises SettingsError."""
        parts = _split(base_url or OPENAI_URL)
        user, password = parts.username, parts.password
        bare = parts._replace(netloc=parts.netloc.rpartition("@")[2])
        credentials = (unquote(user), unquote(password or "")) if user else None
        return cls(bare.geturl(), parts.hostname or "", credentials)

    @property
    def is_openai(self) -> bool:
        """Whether OpenAI, or Azure for it, answers there."""
        return self.host.endswith((".openai.com", ".azure.com"))

    @property
    def is_local(self) -> bool:
        """Whether the server runs on this machine, where no proxy may stand between."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost" or self.host.endswith(".localhost")


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url.strip())
        # The port is only checked when it is read.
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise SettingsError(sentences("base_url_invalid"))
    return parts
