import os
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

import recuerdo
from recuerdo.cli.console import printable
from recuerdo.demo import SAMPLE_USER
from recuerdo.demo.sample import load_sample
from recuerdo.stores.postgres.platform import Platform, parse_sample
from recuerdo.stores.settings import Settings
from tests.fake_openai import FakeOpenAI, stalled, text
from tests.recuerdo.command import Command, Result

READY = "> "
PATIENCE = 60
NOTICED = 5
ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(run_recuerdo: Command) -> Command:
    return run_recuerdo


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    """The run's PostgreSQL in place of the embedded one."""
    monkeypatch.setenv("DATABASE_URL", database_url)


@pytest.fixture
def spanish(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "es_MX.UTF-8")


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "dumb", **more}


def started(*arguments: str, **more: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-m", "recuerdo", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        text=True,
        env=environment(**more),
    )


def one_line(result: Result) -> bool:
    return result.code == 1 and result.out == "" and result.err.count("\n") == 1


# Small commands


def test_small_commands_load_neither_graph_nor_index() -> None:
    code = (
        "import sys; from recuerdo.cli import app\n"
        "assert not {'pydantic', 'numpy'} & set(sys.modules)\n"
        "for arguments in (['--help'], ['market', '24/7'], ['plan', 'show', '--json']):\n"
        "    try: app(arguments)\n"
        "    except SystemExit as ended: assert not ended.code\n"
        "print(sorted({'langgraph', 'chromadb', 'langchain_core', 'openai'} & set(sys.modules)))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment()
    )
    assert shown.stdout.splitlines()[-1] == "[]"


def test_rf_18_market_as_json(run: Command) -> None:
    result = run("market", "XNYS", "--at", "2025-12-06T11:00:00-06:00", "--json")
    assert result.document == {
        "exchange": "XNYS",
        "open": False,
        "at": "2025-12-06T11:00:00-06:00",
        "next_open": "2025-12-08T09:30:00-05:00",
        "next_close": None,
    }


def test_market_in_words(run: Command, spanish: None) -> None:
    result = run("market", "xmex", "--at", "2025-12-05T11:00:00-06:00")
    assert "XMEX: abierto" in result.out
    assert "próximo cierre: 2025-12-05T15:00:00-06:00" in result.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("market", "NOWHERE"), "not known"),
        (("market", "--at", "2025-12-05T10:30:00"), "no time zone"),
        (("market", "--at", "yesterday"), "not an instant"),
        (("plan", "show", "nothing"), "no plan named"),
        (("plan", "show", "/nowhere/plan.yaml"), "cannot be read"),
    ],
)
def test_what_a_user_can_cause_is_one_line(run: Command, arguments: tuple[str, ...], says: str) -> None:
    result = run(*arguments)
    assert one_line(result)
    assert says in result.err


def test_errors_speak_the_language_of_the_locale(run: Command, spanish: None) -> None:
    assert "no se conoce" in run("market", "NOWHERE").err


@pytest.mark.parametrize(
    "arguments", [("chat", "--nothing"), ("market", "--json", "a", "b"), ("context", "show", "--turn", "x")]
)
def test_wrong_usage_is_exit_code_2(run: Command, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.code == 2
    assert result.out == ""


def test_inspect_as_json(run: Command) -> None:
    result = run("inspect", "¿Cómo va AAPL? Mi tarjeta es 4111 1111 1111 1111", "--json")
    assert result.document == {
        "language": "es",
        "symbols": ["AAPL"],
        "maybe": [],
        "sensitive": [{"start": 29, "end": 48, "kind": "card"}],
    }


def test_inspect_reads_standard_input(run: Command) -> None:
    assert run("inspect", "--json", stdin=b"What about TSLA?\n").document["symbols"] == ["TSLA"]


@pytest.mark.parametrize("raw", [b"", b"a\0b", b"\xff\xfe", "\U0001f600".encode()])
def test_inspect_takes_any_bytes(run: Command, raw: bytes) -> None:
    assert run("inspect", "--json", stdin=raw).document["sensitive"] == []


def test_plan_show_is_the_whole_plan(run: Command) -> None:
    result = run("plan", "show")
    assert yaml.safe_load(result.out)["limits"]["max_input"] == 8000
    assert "draft" in result.err


def test_broken_plan_file_names_the_field(run: Command, tmp_path: Path) -> None:
    plan = yaml.safe_load(run("plan", "show").out)
    plan["limits"]["max_input"] = "many"
    file = tmp_path / "plan.yaml"
    file.write_text(yaml.safe_dump(plan))
    result = run("chat", "--plan", str(file), "--message", "hola")
    assert one_line(result)
    assert "limits.max_input" in result.err


# One message


def test_rf_1_message_as_json(run: Command, stored: None) -> None:
    result = run("chat", "--message", "¿Cómo va mi inversión?", "--json")
    assert result.code == 0
    assert "525.00" in result.document["reply"]
    assert result.document["record"]["symbols"] == ["AAPL", "TSLA"]
    assert result.document["conversation"] == result.document["record"]["conversation"]
    assert SAMPLE_USER in result.err


def test_message_in_words(run: Command, stored: None) -> None:
    result = run("chat", "--message", "¿Cómo va mi inversión?")
    assert "P&L total: 425.00 USD" in result.out
    assert "\x1b" not in result.out


def test_piped_text_is_one_message(run: Command, stored: None) -> None:
    document = run("chat", "--json", stdin="Hola.\n¿Cómo va AAPL?\n".encode()).document
    assert document["record"]["number"] == 1
    assert document["record"]["symbols"] == ["AAPL"]


def test_rf_2_conversation_goes_on(run: Command, stored: None) -> None:
    run("chat", "--message", "¿Qué opinas de AAPL?", "--conversation", "c1")
    record = run("chat", "--message", "¿Y el volumen?", "--conversation", "c1", "--json").document["record"]
    assert (record["number"], record["symbols"]) == (2, ["AAPL"])


def test_la_7_preview_leaves_nothing(run: Command, stored: None) -> None:
    seen = run("chat", "--preview", "--message", "siempre mostrar disclaimer", "--user", "ana", "--json")
    assert seen.document["record"]["mode"] == "preview"
    assert run("memory", "list", "--user", "ana", "--json").document["preferences"] == []


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (b"a" * 1_000_000, "1000000 characters"),
        (b"a\0b", "not text"),
        (b"a \xff b", "not text"),
    ],
)
def test_message_that_cannot_be_taken(run: Command, tmp_path: Path, raw: bytes, says: str) -> None:
    result = run("chat", stdin=raw)
    assert one_line(result)
    assert says in result.err
    assert not (tmp_path / "data").exists()


def test_surrogates_of_an_argument(run: Command) -> None:
    assert one_line(run("chat", "--message", "a \udcff b"))


@pytest.mark.parametrize("option", ["--user", "--conversation", "--tenant", "--assistant"])
@pytest.mark.parametrize("name", ["", " ", "a\udcffb", "a\nb"])
def test_names_that_cannot_be_kept(run: Command, option: str, name: str) -> None:
    result = run("chat", "--message", "hola", option, name)
    assert one_line(result)
    assert option in result.err


def test_foreign_conversation(run: Command, stored: None) -> None:
    run("chat", "--message", "hola", "--user", "ana", "--conversation", "hers")
    result = run("chat", "--message", "hola", "--user", "bob", "--conversation", "hers")
    assert one_line(result)
    assert "not available" in result.err


def test_data_folder_that_is_a_file(run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a folder")
    result = run("chat", "--message", "hola")
    assert one_line(result)
    assert "RECUERDO_DATA" in result.err
    assert (tmp_path / "data").read_text() == "not a folder"


def test_secret_of_the_database_is_not_shown(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:hush@127.0.0.1:9/x")
    result = run("chat", "--message", "hola")
    assert one_line(result)
    assert "hush" not in result.err


def test_model_that_cannot_be_found(run: Command, stored: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECUERDO_MODEL", "some-model")
    assert one_line(run("chat", "--message", "hola"))
    assert run("memory", "list").code == 0


# The sample user


def test_sample_user_keeps_what_was_forgotten(run: Command, stored: None) -> None:
    run("chat", "--message", "hola")
    run("memory", "forget", "preferred_timeframe")
    run("chat", "--message", "hola")
    keys = {row["key"] for row in run("memory", "list", "--json").document["preferences"]}
    assert keys == {"show_disclaimers", "favorite_indicators", "notification_style"}


async def test_sample_leaves_a_tenant_with_its_own_data_alone(database_url: str, tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, database_url=database_url)  # type: ignore[arg-type]
    async with recuerdo.open_agent(settings) as agent:
        services, now = agent.services, agent.services.clock()
        own = {"symbol": "AAPL", "price": "1.00", "currency": "USD", "as_of": now}
        platform = Platform(services.database, "bank")
        await platform.load(parse_sample({"quotes": [own]}))
        assert not await load_sample(services, "bank", now)
        assert [str(quote.price) for quote in await platform.quotes(["AAPL", "TSLA"])] == ["1.00"]
        assert await platform.profile(SAMPLE_USER) is None


# Memory and context


def test_im_43_list_and_forget(run: Command, stored: None) -> None:
    run("chat", "--message", "siempre mostrar disclaimer", "--user", "ana")
    run("chat", "--message", "Recuerda que mi perro se llama Coco", "--user", "ana")
    listed = run("memory", "list", "--user", "ana")
    assert "show_disclaimers" in listed.out
    assert "Coco" in listed.out
    assert run("memory", "forget", "2", "--user", "ana").code == 0
    assert run("memory", "forget", "show_disclaimers", "--user", "ana", "--json").document == {
        "user": "ana",
        "forgotten": "show_disclaimers",
    }
    left = run("memory", "list", "--user", "ana", "--json").document
    assert (left["preferences"], left["memories"]) == ([], [])


@pytest.mark.parametrize("item", ["0", "7", "no-such-key", "-1", "²"])
def test_forget_what_is_not_there(run: Command, stored: None, item: str) -> None:
    result = run("memory", "forget", "--user", "ana", "--", item)
    assert one_line(result)


def test_im_45_context_sums_to_the_estimate(run: Command, stored: None) -> None:
    turn = run("chat", "--message", "¿Cómo va AAPL?", "--json").document["turn"]
    record = run("context", "show", "--json").document
    assert record["turn"] == turn
    estimate = record["estimate"]
    assert (
        sum(block["tokens"] for block in record["blocks"]) + estimate["overhead"]
        == (estimate["input_tokens"])
    )
    shown = run("context", "show", "--turn", turn).out
    table = shown[shown.index("block  ") :]
    numbers = [int(number) for number in re.findall(r"^.*? (\d+)(?:  | *$)", table, re.MULTILINE)]
    assert len(numbers) == len(record["blocks"]) + 2
    assert sum(numbers[:-1]) == numbers[-1] == estimate["input_tokens"]


def test_im_45_context_of_another_user_is_not_shown(run: Command, stored: None) -> None:
    turn = run("chat", "--message", "hola", "--conversation", "c1", "--json").document["turn"]
    for arguments in (("--turn", turn), ("--conversation", "c1"), ()):
        assert one_line(run("context", "show", "--user", "bob", *arguments))


def test_text_does_not_steer_the_terminal() -> None:
    assert printable("a\x1b[31mb\x07\u202ec\n\td\x9b") == "a[31mbc\n\td"


# Processes


def test_second_process_says_that_it_has_no_vectors(tmp_path: Path) -> None:
    with recuerdo.open_agent() as agent:
        second = started("chat", "--message", "¿Cómo va mi inversión?")
        out, err = second.communicate(timeout=PATIENCE)
        agent.send_sync("hola", user="ana")
    assert second.returncode == 0
    assert "425.00" in out
    assert "PostgreSQL alone" in err


def test_im_37_sigterm_stops_the_embedded_server(tmp_path: Path) -> None:
    worker = started("worker")
    assert worker.stderr is not None
    assert "running" in worker.stderr.readline()
    postmaster = int(next((tmp_path / "data" / "postgres").rglob("postmaster.pid")).read_text().split()[0])
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=PATIENCE)
    assert worker.returncode == 0
    with pytest.raises(ProcessLookupError):
        os.kill(postmaster, 0)


def test_reader_that_goes_away_is_no_error(stored: None) -> None:
    process = started("plan", "show")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read().count("Traceback") == 0
    process.wait(PATIENCE)


class Terminal:
    """A chat on a pseudo terminal."""

    def __init__(self, *arguments: str, **more: str) -> None:
        self._end, other = os.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "recuerdo", *arguments],
            stdin=other,
            stdout=other,
            stderr=other,
            env=environment(**more),
            start_new_session=True,
            # A run in the background ignores Ctrl-C, and a child would inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(other)
        self.shown = ""

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._end)

    def type(self, line: str) -> None:
        os.write(self._end, line.encode())

    def interrupt(self, until: str) -> None:
        """Press Ctrl-C. A signal just before readline waits is only noticed with the next one."""
        for _ in range(PATIENCE // NOTICED):
            self.process.send_signal(signal.SIGINT)
            if self._shows(until, time.monotonic() + NOTICED):
                break
        self.wait_for(until)

    def interrupt_to_leave(self) -> int:
        """Press Ctrl-C until the process ends; the exit code."""
        while self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(NOTICED)
        return self.process.returncode

    def wait_for(self, words: str) -> str:
        """What was shown up to ``words``; what comes after it is left for the next call."""
        assert self._shows(words, time.monotonic() + PATIENCE), self.shown
        before, _, self.shown = self.shown.partition(words)
        return before

    def _shows(self, words: str, deadline: float) -> bool:
        while words not in self.shown and time.monotonic() < deadline:
            if select.select([self._end], [], [], 0.2)[0]:
                self.shown += self._read()
        return words in self.shown

    def _read(self) -> str:
        try:
            return os.read(self._end, 65536).decode(errors="replace")
        except OSError:  # Linux: the other end is closed
            return ""

    def ended(self) -> int:
        """The exit code, once what is still shown has been taken."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < deadline:
            if select.select([self._end], [], [], 0.1)[0]:
                self._read()
        return self.process.wait(PATIENCE)


def test_chat_on_a_terminal(stored: None) -> None:
    with Terminal("chat", "--conversation", "c1") as chat:
        chat.wait_for("/help")
        chat.wait_for(READY)
        chat.type("¿Cómo va mi inversión?\n")
        chat.wait_for("425.00")
        chat.wait_for(READY)
        chat.type("/contexto\n")
        chat.wait_for("portfolio")
        chat.wait_for("target 6000")
        chat.type("/memory\n")
        chat.wait_for("preferred_timeframe = 4h")
        chat.type("/forget preferred_timeframe\n")
        chat.wait_for("Forgotten: preferred_timeframe")
        chat.type("/forget 99\n")
        chat.wait_for("Nothing is remembered")
        chat.type("/nothing\n")
        chat.wait_for("no command")
        chat.type("/quit\n")
        assert chat.ended() == 0
    with Terminal("chat", "--conversation", "c1") as again:
        again.wait_for("¿Cómo va mi inversión?")
        again.wait_for("425.00")
        again.wait_for(READY)
        again.type("\x04")
        assert again.ended() == 0


def test_im_38_interrupt_cancels_the_reply_and_twice_leaves(run: Command, stored: None) -> None:
    with FakeOpenAI([stalled("Primero dos palabras"), text("Aquí sigo.")]) as server:
        chat = Terminal("chat", "--user", "ana", "--conversation", "c1", OPENAI_BASE_URL=server.url)
        with chat:
            chat.wait_for("/help")
            chat.wait_for(READY)
            chat.type("hola\n")
            chat.wait_for("Primero")
            chat.interrupt("Interrupted")
            chat.wait_for(READY)
            chat.type("¿sigues?\n")
            chat.wait_for("Aquí sigo.")
            chat.wait_for(READY)
            chat.interrupt("Interrupted")
            chat.wait_for(READY)
            assert chat.interrupt_to_leave() == 0


# README


def test_readme_example_runs(tmp_path: Path, stored: None) -> None:
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert example is not None
    done = subprocess.run(
        [sys.executable, "-c", example[1]], capture_output=True, text=True, env=environment(), cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"preferences +high", done.stdout)
    assert "'show_disclaimers': True" in done.stdout


def test_readme_drawing_is_the_graph() -> None:
    diagram = re.search(r"```mermaid\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert diagram is not None
    arrows = re.findall(r"(\w+)(?:\(\(\w+\)\))? (-->|-\.->)(?:\|[^|]*\|)? (\w+)", diagram[1])
    drawn = {(source, target, arrow == "-.->") for source, arrow, target in arrows}
    ends = {"__start__": "start", "__end__": "finish"}
    edges = recuerdo.build_graph().get_graph().edges
    assert drawn == {
        (ends.get(edge.source, edge.source), ends.get(edge.target, edge.target), edge.conditional)
        for edge in edges
    }


def test_readme_names_every_setting() -> None:
    readme = (ROOT / "README.md").read_text()
    for field in Settings.model_fields.values():
        assert f"`{field.validation_alias}`" in readme
