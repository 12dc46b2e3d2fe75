"""The embedded PostgreSQL server and what it must survive (IM-37; design section 7)."""

import asyncio
import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from recuerdo.state.errors import StoreError
from recuerdo.state.sentences import Sentence
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.embedded import EmbeddedServer, binaries, cluster, server

IS_ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not IS_ROOT, reason="needs root")
on_linux = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")

CLIENT = """
import json, os, sys
from pathlib import Path
from recuerdo.stores.postgres.embedded import EmbeddedServer
server = EmbeddedServer(Path(sys.argv[1]))
conninfo = server.start()
print(json.dumps({"pid": server.pid, "conninfo": conninfo}), flush=True)
"""
UNTIL_TOLD = CLIENT + "sys.stdin.readline()\n"
THEN_KILLED = CLIENT + "os.kill(os.getpid(), 9)\n"
# Drops root's rights only after the imports: the interpreter itself may stand below /root.
AS_NOBODY = """
import os, psycopg, pwd, encodings.idna
import recuerdo.stores.postgres.embedded
nobody = pwd.getpwnam("nobody")
os.setgroups([]); os.setgid(nobody.pw_gid); os.setuid(nobody.pw_uid)
"""


def client(script: str, folder: Path, **options: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", script, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def said(process: "subprocess.Popen[str]") -> dict[str, object]:
    return json.loads(process.stdout.readline())


def ask(conninfo: str, query: str) -> object:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    return row[0] if row else None


def tell(conninfo: str, *statements: str) -> None:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def is_alive(pid: int) -> bool:
    """Whether a process is running; a zombie is not."""
    return cluster._command_line(pid) != []


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def as_server_account() -> dict[str, object]:
    """How to start a process under the account that the server runs as."""
    if not IS_ROOT:
        return {}
    return {"user": "nobody", "extra_groups": []}


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "postgres"
    made = EmbeddedServer(folder)
    made.start()
    made.stop()
    return folder


@pytest.fixture
def folder(made_once: Path, tmp_path: Path) -> Iterator[Path]:
    """A folder with a cluster in it; whatever server a test leaves running is stopped."""
    copy = tmp_path / "postgres"
    subprocess.run(["cp", "-a", str(made_once), str(copy)], check=True)
    yield copy
    stop_server(copy)


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "data" / "postgres"
    stop_server(tmp_path / "data" / "postgres")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every account can reach (pytest's own are below one that is not)."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def stop_server(folder: Path) -> None:
    pid = EmbeddedServer(folder).pid if folder.exists() else None
    if pid is not None:
        os.kill(pid, signal.SIGINT)
        wait_for(lambda: not is_alive(pid))


def test_im_37_a_fresh_folder_gives_a_database_that_is_still_there_at_the_second_start(fresh: Path) -> None:
    first = EmbeddedServer(fresh)
    conninfo = first.start()
    assert int(first.version.split(".")[0]) >= 16
    assert ask(conninfo, "SELECT current_user || '@' || current_database()") == "recuerdo@recuerdo"
    tell(conninfo, "CREATE TABLE kept (x int)", "INSERT INTO kept VALUES (7)")
    first.stop()
    assert first.pid is None
    second = EmbeddedServer(fresh)
    assert ask(second.start(), "SELECT x FROM kept") == 7
    second.stop()


def test_no_tcp_fsync_checksums_and_the_encoding(folder: Path) -> None:
    started = EmbeddedServer(folder)
    conninfo = started.start()
    shown = {
        name: ask(conninfo, f"SHOW {name}")
        for name in ("listen_addresses", "fsync", "data_checksums", "server_encoding", "full_page_writes")
    }
    assert shown == {
        "listen_addresses": "",
        "fsync": "on",
        "data_checksums": "on",
        "server_encoding": "UTF8",
        "full_page_writes": "on",
    }
    started.stop()


def test_spanish_letters_and_signs_are_known(folder: Path) -> None:
    started = EmbeddedServer(folder)
    conninfo = started.start()
    assert ask(conninfo, "SELECT lower('ÁÑÜ')") == "áñü"
    assert (
        ask(conninfo, "SELECT to_tsvector('simple', '¿qué?—«hola» Ñandú')::text")
        == "'hola':2 'qué':1 'ñandú':3"
    )
    started.stop()


def test_starting_again_changes_nothing(folder: Path) -> None:
    started = EmbeddedServer(folder)
    conninfo, pid = started.start(), started.pid
    assert (started.start(), started.pid) == (conninfo, pid)
    started.stop()
    started.stop()
    assert started.pid is None


def test_the_server_stays_while_another_client_is_there(folder: Path) -> None:
    one, other = EmbeddedServer(folder), EmbeddedServer(folder)
    one.start()
    conninfo = other.start()
    one.stop()
    assert ask(conninfo, "SELECT 1") == 1
    other.stop()
    assert other.pid is None


def test_the_server_stops_when_the_last_process_just_ends(folder: Path) -> None:
    first, second = client(UNTIL_TOLD, folder), client(UNTIL_TOLD, folder)
    pid = said(first)["pid"]
    assert said(second)["pid"] == pid
    first.communicate("\n")
    assert is_alive(pid)
    second.communicate("\n")
    assert not is_alive(pid)


def test_four_processes_start_at_once_on_a_fresh_folder(fresh: Path) -> None:
    clients = [client(UNTIL_TOLD, fresh) for _ in range(4)]
    pids = {said(process)["pid"] for process in clients}
    assert len(pids) == 1
    for process in clients:
        process.communicate("\n")
    assert [process.returncode for process in clients] == [0, 0, 0, 0]
    assert not is_alive(pids.pop())


def test_kill_9_of_a_client_is_noticed_by_the_next_that_ends(folder: Path) -> None:
    killed = client(THEN_KILLED, folder)
    pid = said(killed)["pid"]
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert is_alive(pid)
    following = EmbeddedServer(folder)
    following.start()
    assert following.pid == pid
    following.stop()
    assert not is_alive(pid)


def test_kill_9_of_the_server_loses_nothing_and_start_brings_it_back(folder: Path) -> None:
    started = EmbeddedServer(folder)
    conninfo = started.start()
    tell(conninfo, "CREATE TABLE kept (x int)", "INSERT INTO kept VALUES (7)")
    with psycopg.connect(conninfo):  # its backend outlives the postmaster for a moment
        killed = started.pid
        os.kill(killed, signal.SIGKILL)
        assert ask(started.start(), "SELECT x FROM kept") == 7
    assert started.pid != killed
    started.stop()


def test_im_37_a_server_that_was_killed_is_brought_back_while_a_client_runs(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    started = EmbeddedServer(folder)
    conninfo = started.start()
    tell(conninfo, "CREATE TABLE kept (x int)", "INSERT INTO kept VALUES (7)")
    for _ in range(2):
        killed = started.pid
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda killed=killed: started.pid not in (None, killed) and answers(conninfo))
        assert ask(conninfo, "SELECT x FROM kept") == 7
    started.stop()
    assert started.pid is None
    assert [record.name for record in caplog.records] == ["recuerdo.stores.postgres.embedded.server"] * 2


def test_a_server_that_cannot_be_brought_back_is_told_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "_WATCH_SECONDS", 0.01)
    tried = []
    started = EmbeddedServer(folder)
    started.start()

    def refuse(*_: object) -> str:
        tried.append(1)
        raise StoreError(Sentence("no", "it does not start"))

    monkeypatch.setattr(server, "_start_server", refuse)
    os.kill(started.pid, signal.SIGKILL)
    wait_for(lambda: len(tried) > 3)
    started.stop()
    assert [record.getMessage() for record in caplog.records] == ["it does not start"]


async def test_im_37_the_pool_goes_on_after_the_server_was_killed(folder: Path) -> None:
    started = EmbeddedServer(folder)
    database = await Database.open(await asyncio.to_thread(started.start))
    os.kill(started.pid, signal.SIGKILL)
    for _ in range(10):
        try:
            async with database.connection() as connection:
                cursor = await connection.execute("select 1 as one")
                assert await cursor.fetchone() == {"one": 1}
            break
        except StoreError:
            await asyncio.sleep(0.2)
    else:
        pytest.fail("the server did not come back")
    await database.close()
    await asyncio.to_thread(started.stop)


def answers(conninfo: str) -> bool:
    try:
        return ask(conninfo, "SELECT 1") == 1
    except psycopg.OperationalError:
        return False


def test_kill_9_of_the_server_and_another_client_starts_it(folder: Path) -> None:
    first = client(UNTIL_TOLD, folder)
    killed = said(first)["pid"]
    os.kill(killed, signal.SIGKILL)
    other = EmbeddedServer(folder)
    assert ask(other.start(), "SELECT 1") == 1
    assert other.pid != killed
    other.stop()
    assert other.pid is not None  # the first is a client of it, too
    first.communicate("\n")
    assert first.returncode == 0
    assert other.pid is None


def test_kill_9_of_everything_leaves_no_obstacle(folder: Path) -> None:
    killed = client(THEN_KILLED, folder)
    pid = said(killed)["pid"]
    killed.communicate()
    os.kill(pid, signal.SIGKILL)  # nobody may ever reap it: a zombie with the number of the pid file
    following = EmbeddedServer(folder)
    assert ask(following.start(), "SELECT 1") == 1
    following.stop()


def test_a_stale_pid_of_another_process_is_cleared_and_the_process_not_harmed(folder: Path) -> None:
    with subprocess.Popen(["sleep", "600"], **as_server_account()) as stranger:
        pid_file = folder / "cluster" / "postmaster.pid"
        pid_file.write_text(f"{stranger.pid}\n{folder}\n1\n5432\n.\n\n1 1\nready\n")
        (folder / "cluster" / ".s.PGSQL.5432.lock").write_text(f"{stranger.pid}\n{folder}\n1\n5432\n.\n")
        started = EmbeddedServer(folder)
        assert started.pid is None
        assert ask(started.start(), "SELECT 1") == 1
        started.stop()
        assert stranger.poll() is None
        stranger.kill()


def test_a_stale_pid_of_another_folders_server_does_not_harm_that_server(folder: Path, fresh: Path) -> None:
    shutil.copytree(folder, fresh)
    if IS_ROOT:
        subprocess.run(["chown", "-R", "nobody", str(fresh / "cluster")], check=True)
    other = EmbeddedServer(fresh)
    other_conninfo = other.start()
    shutil.copy(fresh / "cluster" / "postmaster.pid", folder / "cluster" / "postmaster.pid")
    started = EmbeddedServer(folder)
    started.start()
    assert started.pid != other.pid
    started.stop()
    assert ask(other_conninfo, "SELECT 1") == 1
    other.stop()


def test_a_server_that_cannot_be_seen_is_not_started_twice(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One in another container on the same volume: its processes are invisible, and it is slow to answer."""
    started = EmbeddedServer(folder)
    conninfo = started.start()
    written = (folder / "cluster" / "postmaster.pid").read_text()
    with monkeypatch.context() as hidden:
        hidden.setattr(cluster, "_command_line", lambda _: [])
        hidden.setattr(cluster.Cluster, "answers", lambda _: None)
        hidden.setattr(server, "_START_SECONDS", 0.1)
        with pytest.raises(StoreError, match="did not answer within"):
            EmbeddedServer(folder).start()
    assert (folder / "cluster" / "postmaster.pid").read_text() == written
    assert ask(conninfo, "SELECT 1") == 1
    started.stop()


@pytest.mark.parametrize("error", [psycopg.OperationalError, psycopg.errors.AdminShutdown])
def test_a_server_that_ends_while_it_is_asked_is_brought_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: type[psycopg.Error]
) -> None:
    started = EmbeddedServer(folder)
    started.start()
    killed = started.pid
    execute = psycopg.Connection.execute

    def break_off(*arguments: object) -> object:
        monkeypatch.setattr(psycopg.Connection, "execute", execute)
        os.kill(killed, signal.SIGKILL)
        raise error

    monkeypatch.setattr(psycopg.Connection, "execute", break_off)
    assert ask(started.start(), "SELECT 1") == 1
    assert started.pid != killed
    started.stop()


def test_an_empty_pid_file_is_no_obstacle(folder: Path) -> None:
    (folder / "cluster" / "postmaster.pid").touch()
    started = EmbeddedServer(folder)
    assert ask(started.start(), "SELECT 1") == 1
    started.stop()


def test_an_initdb_that_was_broken_off_is_begun_anew(fresh: Path) -> None:
    unfinished = fresh / "cluster.unfinished-1"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18\n")
    started = EmbeddedServer(fresh)
    assert ask(started.start(), "SELECT 1") == 1
    assert not unfinished.exists()
    started.stop()


def test_a_folder_that_was_moved_works(folder: Path) -> None:
    moved = folder.with_name("elsewhere")
    folder.rename(moved)
    started = EmbeddedServer(moved)
    assert ask(started.start(), "SELECT 1") == 1
    started.stop()
    moved.rename(folder)


@pytest.mark.parametrize("name", ["long" * 40, "a,b"], ids=["longer than a socket's name", "comma"])
def test_a_path_that_a_socket_cannot_have(folder: Path, name: str) -> None:
    parent = folder.with_name(name)
    parent.mkdir()
    started = EmbeddedServer(folder.rename(parent / "postgres"))
    conninfo = started.start()
    assert ask(conninfo, "SELECT 1") == 1
    link = Path(psycopg.conninfo.conninfo_to_dict(conninfo)["host"])
    assert link.is_symlink()
    started.stop()
    assert not link.is_symlink()


def test_a_link_that_is_not_ours_is_not_followed(
    folder: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(open_folder))
    parent = folder.with_name("long" * 40)
    parent.mkdir()
    moved = folder.rename(parent / "postgres")
    found = (moved / "cluster").stat()
    planted = open_folder / f"recuerdo-{os.geteuid()}-{found.st_dev:x}-{found.st_ino:x}"
    planted.mkdir()
    started = EmbeddedServer(moved)
    with pytest.raises(StoreError, match="has taken"):
        started.start()
    planted.rmdir()
    stop_server(moved)


def test_a_client_does_not_wait_for_the_server_that_it_leaves_behind(folder: Path) -> None:
    """`make run | cat` ends: the server holds none of its client's pipes."""
    starter = client(THEN_KILLED, folder, stderr=subprocess.PIPE)
    output, errors = starter.communicate(timeout=60)
    assert is_alive(json.loads(output)["pid"])
    assert errors == ""


def test_ctrl_c_in_the_terminal_does_not_reach_the_server(folder: Path) -> None:
    started = EmbeddedServer(folder)
    started.start()
    assert os.getsid(started.pid) == started.pid
    started.stop()


def test_a_fork_is_no_client(folder: Path) -> None:
    script = CLIENT + (
        "child = os.fork()\n"
        "if child == 0:\n    server.stop(); os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "other = EmbeddedServer(Path(sys.argv[1])); other.start(); other.stop()\n"
        "print(json.dumps({'pid': server.pid}), flush=True)\n"
    )
    process = client(script, folder)
    pid = said(process)["pid"]
    assert said(process)["pid"] == pid
    process.communicate()
    assert process.returncode == 0
    assert not is_alive(pid)


def test_a_fork_that_lives_on_does_not_keep_the_server(folder: Path) -> None:
    script = CLIENT + (
        "reading, writing = os.pipe()\n"
        "if os.fork() == 0:\n    os.close(writing); os.read(reading, 1); os._exit(0)\n"
        "server.stop()\n"
        "print(json.dumps({'pid': server.pid}), flush=True)\n"
    )
    process = client(script, folder)
    assert is_alive(said(process)["pid"])
    assert said(process)["pid"] is None
    process.communicate()


@on_linux
def test_the_users_environment_does_not_reach_the_server(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("PGPORT", "9999")
    monkeypatch.setenv("PGHOST", "nowhere.invalid")
    monkeypatch.setenv("PGDATABASE", "other")
    started = EmbeddedServer(folder)
    assert ask(started.start(), "SELECT current_database()") == "recuerdo"
    assert b"sk-secret" not in Path(f"/proc/{started.pid}/environ").read_bytes()
    started.stop()


def test_the_log_holds_no_text_of_a_users_and_stays_small(folder: Path) -> None:
    log = folder / "server.log"
    log.write_text("old\n" * 400_000)
    started = EmbeddedServer(folder)
    conninfo = started.start()
    tell(conninfo, "CREATE TABLE said (text text UNIQUE)", "INSERT INTO said VALUES ('my secret')")
    with pytest.raises(psycopg.errors.UniqueViolation):
        tell(conninfo, "INSERT INTO said VALUES ('my secret')")
    started.stop()
    text = log.read_text()
    assert "duplicate key" in text
    assert "secret" not in text
    assert len(text) < 10_000


@as_root
def test_root_with_a_data_folder_below_a_closed_parent(fresh: Path) -> None:
    closed = fresh.parent
    closed.mkdir(mode=0o700)
    started = EmbeddedServer(fresh)
    assert ask(started.start(), "SELECT 1") == 1
    started.stop()
    assert closed.stat().st_mode & 0o777 == 0o700
    assert (fresh / "cluster").stat().st_uid != 0


@as_root
def test_root_in_the_folder_of_another_account_leaves_everything_to_it(open_folder: Path) -> None:
    folder = open_folder / "postgres"
    folder.mkdir()
    shutil.chown(folder, "games")
    owner = folder.stat().st_uid
    started = EmbeddedServer(folder)
    started.start()
    started.stop()
    assert {path.stat().st_uid for path in folder.iterdir()} == {owner}


@as_root
def test_without_root_the_server_runs_as_the_account_itself(open_folder: Path) -> None:
    shutil.chown(open_folder, "nobody")
    process = client(AS_NOBODY + UNTIL_TOLD, open_folder / "postgres")
    answer = said(process)
    assert ask(answer["conninfo"], "SELECT 1") == 1
    process.communicate("\n")
    assert process.returncode == 0
    assert not is_alive(answer["pid"])


@as_root
def test_without_root_a_folder_of_somebody_elses_is_refused_clearly(open_folder: Path) -> None:
    process = client(AS_NOBODY + CLIENT, open_folder / "postgres", stderr=subprocess.PIPE)
    _, errors = process.communicate()
    assert "There is no permission to use the folder" in errors


@as_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_root_that_may_not_change_accounts_is_told_so(fresh: Path) -> None:
    command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c", CLIENT, str(fresh)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "changing accounts is not permitted here" in result.stderr


@pytest.fixture
def closed_binaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the installation in use, below a folder that only root may enter."""
    used = next(path for path, _ in binaries._installations() if (path / "postgres").is_file()).parent
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    copy = closed / used.parent.name / used.name
    shutil.copytree(used, copy, symlinks=True)
    libraries = used.parent.with_name(f"{used.parent.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, closed / libraries.name)
    monkeypatch.setattr(binaries, "_installations", lambda: [(copy / "bin", True)])
    return closed


@as_root
def test_root_with_programs_below_a_closed_parent(
    fresh: Path, closed_binaries: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "_CACHE", open_folder / "cache")
    for _ in range(2):
        started = EmbeddedServer(fresh)
        assert ask(started.start(), "SELECT 1") == 1
        program = Path(f"/proc/{started.pid}/exe").readlink()
        started.stop()
    (copy,) = (open_folder / "cache").iterdir()  # made once
    assert program.is_relative_to(copy)
    assert closed_binaries.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_uid for path in copy.rglob("*")} == {0}
    assert not [path for path in copy.rglob("*") if path.stat().st_mode & 0o022]


@as_root
def test_root_takes_no_programs_from_a_cache_that_others_can_change(
    fresh: Path, closed_binaries: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "_CACHE", open_folder / "cache")
    monkeypatch.setattr(tempfile, "tempdir", str(open_folder))
    (open_folder / "cache").mkdir()
    shutil.chown(open_folder / "cache", "nobody")
    (open_folder / "recuerdo-cache").symlink_to(closed_binaries)
    with pytest.raises(StoreError, match="cannot read"):
        EmbeddedServer(fresh).start()


def test_no_programs_for_this_machine(
    fresh: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (open_folder / "postgres").write_bytes(b"\x7fELF of another machine")
    (open_folder / "postgres").chmod(0o755)
    places = [(open_folder, True), (open_folder / "missing", True)]
    monkeypatch.setattr(binaries, "_installations", lambda: places)
    with pytest.raises(StoreError, match="no programs of PostgreSQL 16 or newer"):
        EmbeddedServer(fresh).start()


def test_data_of_another_major_version(folder: Path) -> None:
    (folder / "cluster" / "PG_VERSION").write_text("13\n")
    with pytest.raises(StoreError, match="written by PostgreSQL 13, and only PostgreSQL"):
        EmbeddedServer(folder).start()


def test_a_server_that_does_not_start_says_why(folder: Path) -> None:
    with (folder / "cluster" / "postgresql.conf").open("a") as settings:
        settings.write("nonsense = 1\n")
    started = EmbeddedServer(folder)
    with pytest.raises(StoreError, match='unrecognized configuration parameter "nonsense"') as caught:
        started.start()
    assert "nonsense" in caught.value.sentence.es


def test_a_failed_start_makes_no_client(folder: Path) -> None:
    settings = folder / "cluster" / "postgresql.conf"
    right = settings.read_text()
    settings.write_text(right + "nonsense = 1\n")
    failed, following = EmbeddedServer(folder), EmbeddedServer(folder)
    with pytest.raises(StoreError):
        failed.start()
    settings.write_text(right)
    following.start()
    following.stop()
    assert following.pid is None


def test_an_initdb_that_fails_says_why_and_leaves_nothing(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_CHARACTER_TYPES", ("xx_XX.nonsense",))
    with pytest.raises(StoreError, match='invalid locale name "xx_XX'):
        EmbeddedServer(fresh).start()
    assert not list(fresh.glob("cluster*"))


def test_a_missing_character_type_leads_to_the_next(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_CHARACTER_TYPES", ("xx_XX.nonsense", "C"))
    started = EmbeddedServer(fresh)
    assert ask(started.start(), "SELECT datctype FROM pg_database LIMIT 1") == "C"
    started.stop()


def test_too_little_room_on_the_disk(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, 0))
    with pytest.raises(StoreError, match="not enough space"):
        EmbeddedServer(fresh).start()


def test_a_file_in_the_place_of_the_folder(fresh: Path) -> None:
    fresh.parent.mkdir()
    fresh.touch()
    with pytest.raises(StoreError, match="cannot be used"):
        EmbeddedServer(fresh).start()
    fresh.unlink()


def test_something_else_in_the_place_of_the_cluster(fresh: Path) -> None:
    (fresh / "cluster").mkdir(parents=True)
    (fresh / "cluster" / "letter.txt").write_text("mine")
    with pytest.raises(StoreError, match="cannot be used"):
        EmbeddedServer(fresh).start()
    assert (fresh / "cluster" / "letter.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("number", "said"),
    [(errno.EROFS, "read-only disk"), (errno.EACCES, "no permission"), (errno.ENOSPC, "not enough space")],
)
def test_what_the_system_refuses_is_said_clearly(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(server, "Membership", refuse)
    with pytest.raises(StoreError, match=said) as caught:
        EmbeddedServer(fresh).start()
    assert str(fresh) in caught.value.sentence.es


def test_a_start_that_others_hold_up_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_LOCK_SECONDS", 0.05)
    with (folder / "start.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match="for too long"):
            EmbeddedServer(folder).start()


def test_a_server_that_does_not_answer_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_START_SECONDS", 0.05)
    monkeypatch.setattr(cluster.Cluster, "answers", lambda _: None)
    with pytest.raises(StoreError, match="did not answer within"):
        EmbeddedServer(folder).start()


def test_stopping_never_raises(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    started = EmbeddedServer(folder)
    started.start()
    moved = folder.rename(folder.with_name("away"))
    started.stop()
    assert "could not be stopped" in caplog.text
    moved.rename(folder)


def test_windows_is_told_to_use_a_server_of_its_own(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.sys, "platform", "win32")
    with pytest.raises(StoreError, match="DATABASE_URL"):
        EmbeddedServer(fresh).start()
