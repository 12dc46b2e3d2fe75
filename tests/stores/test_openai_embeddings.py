"""Embeddings of an OpenAI-compatible server, as the settings name them (A-40)."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from recuerdo.state.errors import SettingsError, StoreError
from recuerdo.stores.embeddings import BundledEmbedder, build_embedder
from recuerdo.stores.settings import Settings


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append({**body, "key": self.headers["Authorization"], "path": self.path})
        vectors = [{"index": n, "embedding": [3.0, 4.0]} for n, _ in enumerate(body["input"])]
        answer = {"data": vectors, "model": body["model"], "usage": {"prompt_tokens": 1, "total_tokens": 1}}
        self._send(
            self.server.status, answer if self.server.status == 200 else {"error": {"message": "hush"}}
        )

    def _send(self, status, answer):
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as running:
        running.requests, running.status = [], 200
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


def settings(server=None, **named):
    url = f"http://127.0.0.1:{server.server_address[1]}/v1" if server else None
    return Settings(openai_base_url=url, **named)


@pytest.mark.parametrize("named", [None, "bundled"])
def test_a_40_the_default_is_the_bundled_model(named):
    assert isinstance(build_embedder(settings(embeddings=named, openai_api_key="sk-hush")), BundledEmbedder)


async def test_a_40_texts_go_to_the_named_model_as_texts(server):
    embedder = build_embedder(settings(server, embeddings="text-embedding-3-small", openai_api_key="sk-hush"))
    assert await embedder.embed(["uno", "dos"]) == [[0.6, 0.8], [0.6, 0.8]]
    assert await embedder.embed_query("tres") == [0.6, 0.8]
    assert [request["input"] for request in server.requests] == [["uno", "dos"], ["tres"]]
    assert {request["model"] for request in server.requests} == {"text-embedding-3-small"}
    assert {request["key"] for request in server.requests} == {"Bearer sk-hush"}
    assert {request["path"] for request in server.requests} == {"/v1/embeddings"}
    assert (embedder.name, embedder.dimensions) == ("OpenAIEmbeddings:text-embedding-3-small", 2)


async def test_a_server_of_ones_own_needs_no_key(server):
    embedder = build_embedder(settings(server, embeddings="nomic"))
    assert await embedder.embed_query("uno") == [0.6, 0.8]


async def test_a_refusal_is_a_store_error_without_the_providers_words(server):
    server.status = 401
    embedder = build_embedder(settings(server, embeddings="nomic", openai_api_key="sk-hush"))
    with pytest.raises(StoreError, match="AuthenticationError") as failed:
        await embedder.embed_query("uno")
    assert "hush" not in str(failed.value)


def test_a_model_without_a_place_to_ask_is_refused():
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        build_embedder(settings(embeddings="text-embedding-3-small"))
