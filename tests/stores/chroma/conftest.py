import random
import socket
import subprocess
import sysconfig
import time
from itertools import count
from pathlib import Path

import httpx
import pytest

DIMENSIONS = 16
_tenants = count(1)


class ChromaProcess:
    """A Chroma server on a port of its own, in ``folder``."""

    def __init__(self, folder):
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        program = Path(sysconfig.get_path("scripts")) / "chroma"
        command = [
            str(program),
            "run",
            "--path",
            str(self.folder),
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not self._answers():
            assert self.process.poll() is None and time.monotonic() < deadline, "the server did not start"
            time.sleep(0.05)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def _answers(self):
        try:
            return httpx.get(f"{self.url}/api/v2/heartbeat").status_code == 200
        except httpx.TransportError:
            return False


@pytest.fixture(scope="session")
def chroma_server(tmp_path_factory):
    """Address of a running Chroma server."""
    process = ChromaProcess(tmp_path_factory.mktemp("chroma") / "server")
    process.start()
    yield process.url
    process.stop()


@pytest.fixture
def tenant():
    """A tenant that no other test uses."""
    return f"tenant-{next(_tenants)}"


class NamedEmbedder:
    """An embedder by name alone: the index never embeds."""

    dimensions = DIMENSIONS

    def __init__(self, name="model-a"):
        self.name = name


@pytest.fixture
def embedder():
    return NamedEmbedder


@pytest.fixture
def vector():
    """A vector for a number, always the same one."""

    def make(number, dimensions=DIMENSIONS):
        values = random.Random(number)
        return [values.gauss(0, 1) for _ in range(dimensions)]

    return make
