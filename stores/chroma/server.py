"""A Chroma server, which any number of processes may use at once (CHROMA_URL)."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from recuerdo.state.errors import SettingsError
from recuerdo.state.sentences import Sentence
from recuerdo.stores.chroma.connection import ChromaConnection, sentences

if TYPE_CHECKING:
    from chromadb.api import ServerAPI

_THREADS = 4
_TIMEOUT_SECONDS = 10.0


class ChromaServer(ChromaConnection):
    """The server at ``url``. It is asked for the first time at the first call, and again after a failure.

    Raises SettingsError when ``url`` is no address.
    """

    def __init__(self, url: str) -> None:
        self._host, self._port, self._ssl = _address(url)
        self._server: ServerAPI | None = None
        super().__init__(f"{self._host}:{self._port}", _THREADS)

    def server(self) -> "ServerAPI":
        """See ChromaConnection."""
        if self._server is None:
            self._server = self._connect()
        return self._server

    def broken(self, kind: str) -> Sentence:
        """See ChromaConnection."""
        return sentences("index_server_broken", server=self.name, kind=kind)

    def purge(self) -> None:
        """Nothing: the files are the server's, see ``chroma vacuum``."""

    def close(self) -> None:
        """Close the connections: blocks until the calls under way are done."""
        self._workers.shutdown()

    def _connect(self) -> "ServerAPI":
        from chromadb.api import ServerAPI
        from chromadb.api.fastapi import FastAPI
        from chromadb.config import Settings, System

        system = System(
            Settings(
                chroma_api_impl="chromadb.api.fastapi.FastAPI",
                chroma_server_host=self._host,
                chroma_server_http_port=self._port,
                chroma_server_ssl_enabled=self._ssl,
                anonymized_telemetry=False,
            )
        )
        server = system.instance(ServerAPI)  # type: ignore[type-abstract]
        assert isinstance(server, FastAPI), "as the settings say"
        # Chroma itself waits for ever.
        server._session.timeout = _TIMEOUT_SECONDS
        system.start()
        return server


def _address(url: str) -> tuple[str, int, bool]:
    """Host, port and whether it is https."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise SettingsError(sentences("chroma_url_invalid")) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.username:
        raise SettingsError(sentences("chroma_url_invalid"))
    ssl = parts.scheme == "https"
    return parts.hostname, port or (443 if ssl else 8000), ssl
