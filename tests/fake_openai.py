"""A local server that speaks ``POST /v1/chat/completions`` and answers from a script.

    with FakeOpenAI([text("Hola"), failure(429, retry_after=0.01), text("De nuevo")]) as server:
        ...  # OPENAI_BASE_URL = server.url
    server.requests  # the JSON body of every request, in order

One reply is taken from the script for each request. It is streamed when the request says so. A request
beyond the end of the script is answered with status 400 and the code ``script_exhausted``.
"""

import json
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Json = dict[str, Any]

CUT_OFF = "cut off"
ENDED_EARLY = "ended early"
FAILED_MIDWAY = "failed midway"
STALLED = "stalled"


@dataclass(frozen=True)
class Reply:
    """One scripted answer; made by the functions below."""

    text: str = ""
    tool_calls: tuple[tuple[str, Json], ...] = ()
    input_tokens: int = 10
    output_tokens: int = 5
    status: int = 200
    code: str | None = None
    message: str = ""
    retry_after: float | None = None
    delay: float = 0.0
    ending: str | None = None

    @property
    def finish_reason(self) -> str:
        return "tool_calls" if self.tool_calls else "stop"

    @property
    def usage(self) -> Json:
        return {
            "prompt_tokens": self.input_tokens,
            "completion_tokens": self.output_tokens,
            "total_tokens": self.input_tokens + self.output_tokens,
        }


def text(words: str, *, input_tokens: int = 10, output_tokens: int = 5) -> Reply:
    """A reply in words, streamed word by word."""
    return Reply(words, input_tokens=input_tokens, output_tokens=output_tokens)


def tool_calls(*calls: tuple[str, Json], words: str = "") -> Reply:
    """Calls of tools as ``(name, arguments)``; several are parallel. Ids: ``call_1``, ``call_2``..."""
    return Reply(words, tool_calls=calls)


def failure(
    status: int, code: str | None = None, message: str = "no", *, retry_after: float | None = None
) -> Reply:
    """An error answer. ``retry_after`` is in seconds; for 429 and 5xx a tiny one keeps a test fast."""
    return Reply(status=status, code=code, message=message, retry_after=retry_after)


def slow(words: str, seconds: float) -> Reply:
    """A reply that starts only after ``seconds``, or when the server closes."""
    return replace(text(words), delay=seconds)


def cut_off(words: str) -> Reply:
    """The connection breaks in the middle of the answer, before its last word."""
    return replace(text(words), ending=CUT_OFF)


def failed_midway(words: str) -> Reply:
    """A stream whose last event, in place of its last word, is an error that the server reports."""
    return replace(text(words), ending=FAILED_MIDWAY)


def stalled(words: str) -> Reply:
    """A stream that falls silent before its last word, until the server closes."""
    return replace(text(words), ending=STALLED)


def ended_early(words: str) -> Reply:
    """A stream that ends without a finish reason, before its last word, on a sound connection."""
    return replace(text(words), ending=ENDED_EARLY)


class FakeOpenAI:
    """The server, as a context manager. It listens on 127.0.0.1, on a free port."""

    def __init__(self, script: Iterable[Reply]) -> None:
        self.requests: list[Json] = []
        self.headers: list[Mapping[str, str]] = []
        self.paths: list[str] = []
        self._script = iter(script)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """The base URL, with ``/v1``."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, body: Json, headers: Mapping[str, str]) -> Reply:
        """Record one request and give the next reply of the script."""
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
            reply = next(self._script, failure(400, "script_exhausted"))
        self._closing.wait(reply.delay)
        return reply

    def wait_for_the_end(self) -> None:
        """Return when the server closes."""
        self._closing.wait()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        return type("Handler", (_Handler,), {"fake": self})


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the script; anything else is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeOpenAI

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.fake.paths.append(self.path)
        if self.path != "/v1/chat/completions":
            self._send_json(404, {"error": {"message": "no such path", "code": "path"}})
            return
        reply = self.fake.take(body, {name.lower(): value for name, value in self.headers.items()})
        if reply.status != 200:
            error = {"message": reply.message, "type": "error", "param": None, "code": reply.code}
            self._send_json(reply.status, {"error": error}, reply.retry_after)
        elif body.get("stream"):
            self._send_stream(body, reply)
        else:
            self._send_completion(body, reply)

    def _send_json(self, status: int, content: Json, retry_after: float | None = None) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if retry_after is not None:
            self.send_header("Retry-After", str(retry_after))
        self.end_headers()
        self.wfile.write(data)

    def _send_completion(self, body: Json, reply: Reply) -> None:
        if reply.ending == CUT_OFF:
            self.close_connection = True
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"id": ')
            return
        message = {"role": "assistant", "content": reply.text or None}
        if reply.tool_calls:
            message["tool_calls"] = list(_calls(reply))
        choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
        self._send_json(
            200, {**_envelope(body, "chat.completion"), "choices": [choice], "usage": reply.usage}
        )

    def _send_stream(self, body: Json, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in _events(body, reply):
            self._write_chunk(f"data: {event}\n\n".encode())
        if reply.ending == STALLED:
            self.fake.wait_for_the_end()
        self.close_connection = reply.ending in (CUT_OFF, STALLED)
        if not self.close_connection:
            self._write_chunk(b"")

    def _write_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a test's output is its own."""


def _envelope(body: Json, kind: str) -> Json:
    return {"id": "chatcmpl-fake", "object": kind, "created": 0, "model": body["model"]}


def _calls(reply: Reply) -> Iterator[Json]:
    for number, (name, arguments) in enumerate(reply.tool_calls, 1):
        function = {"name": name, "arguments": json.dumps(arguments)}
        yield {"id": f"call_{number}", "type": "function", "function": function}


def _events(body: Json, reply: Reply) -> Iterator[str]:
    envelope = _envelope(body, "chat.completion.chunk")
    for delta in _deltas(reply):
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        yield json.dumps({**envelope, "choices": [choice]})
    if reply.ending == FAILED_MIDWAY:
        yield json.dumps({"error": {"message": "engine died", "type": "server_error", "code": None}})
    if reply.ending:
        return
    last = {"index": 0, "delta": {}, "finish_reason": reply.finish_reason}
    yield json.dumps({**envelope, "choices": [last]})
    if body.get("stream_options", {}).get("include_usage"):
        yield json.dumps({**envelope, "choices": [], "usage": reply.usage})
    yield "[DONE]"


def _deltas(reply: Reply) -> Iterator[Json]:
    """The words one by one, then each call: its head, and its arguments in two halves."""
    words = reply.text.split(" ")
    yield {"role": "assistant", "content": words[0]}
    for word in words[1:-1] if reply.ending else words[1:]:
        yield {"content": f" {word}"}
    for index, call in enumerate(_calls(reply)):
        arguments = call["function"]["arguments"]
        head = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
        yield {"tool_calls": [head]}
        for part in (arguments[: len(arguments) // 2], arguments[len(arguments) // 2 :]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}
