"""The house's own rules: rooms and links, sentences in two languages, lock files, what may not be committed."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
import yaml

from recuerdo.state.sentences import Sentences

ROOT = Path(__file__).parents[1]
FLOORS = ("state", "stores", "nodes", "graph", "recuerdo")
"""From the ground floor to the face: a room imports from its own floor and from those below."""
ROOMS = FLOORS[:-1]
LOCKS = ("requirements.lock", "requirements-dev.lock")


@cache
def committed() -> dict[str, str]:
    """Every file that is committed or about to be, by its path; the value is git's mode, empty if new."""
    modes = dict.fromkeys(_git("ls-files", "--others", "--exclude-standard"), "")
    for line in _git("ls-files", "--stage"):
        mode, _, _, path = line.split(maxsplit=3)
        modes[path] = mode
    return {
        path: mode for path, mode in modes.items() if (ROOT / path).is_symlink() or (ROOT / path).exists()
    }


def _git(*command: str) -> list[str]:
    output = subprocess.run(["git", *command, "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [line for line in output.stdout.split("\0") if line]


def _texts(paths: list[str]) -> Iterator[tuple[str, str]]:
    for path in paths:
        yield path, (ROOT / path).read_text(encoding="utf-8")


def _modules() -> list[str]:
    return [path for path in committed() if path.endswith(".py") and path.split("/")[0] in FLOORS]


def _code() -> list[str]:
    return [path for path in committed() if path.endswith(".py")]


def _imported(source: str) -> Iterator[str]:
    """Every module that ``source`` names in an import, at the top or inside a function."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from _imported_from(node)


def _imported_from(node: ast.ImportFrom) -> Iterator[str]:
    module = "." * node.level + (node.module or "")
    # "from recuerdo import graph" names a room, "from recuerdo import Agent" the face.
    yield from (f"recuerdo.{alias.name}" for alias in node.names) if module == "recuerdo" else [module]


def _floor(module: str) -> str | None:
    """The room that a module of ours belongs to; None for modules of others."""
    first, _, rest = module.partition(".")
    if first != "recuerdo":
        return None
    room = rest.partition(".")[0]
    return room if room in ROOMS else "recuerdo"


def test_imports_go_down_only() -> None:
    upward = []
    for path, source in _texts(_modules()):
        allowed = FLOORS[: FLOORS.index(path.split("/")[0]) + 1]
        upward += [(path, name) for name in _imported(source) if _floor(name) not in (None, *allowed)]
    assert upward == []


def test_rooms_import_by_full_names() -> None:
    relative = [
        (path, name) for path, source in _texts(_modules()) for name in _imported(source) if name[0] == "."
    ]
    assert relative == []


def test_nothing_imports_a_room_by_its_bare_name() -> None:
    bare = [
        (path, name)
        for path, source in _texts(_code())
        for name in _imported(source)
        if name.split(".")[0] in ROOMS
    ]
    assert bare == []


@pytest.mark.parametrize("room", ROOMS)
def test_the_rooms_are_linked_into_the_package(room: str) -> None:
    link = ROOT / "recuerdo" / room
    assert link.is_symlink()
    assert str(link.readlink()) == f"../{room}"
    assert (ROOT / room).is_dir()
    assert committed()[f"recuerdo/{room}"] == "120000"


def test_every_folder_with_code_is_a_package() -> None:
    missing = {
        str(parent)
        for path in _modules()
        for parent in Path(path).parents[:-1]
        if not (ROOT / parent / "__init__.py").is_file()
    }
    assert missing == set()


def test_every_module_says_what_it_is() -> None:
    silent = [path for path, source in _texts(_modules()) if not ast.get_docstring(ast.parse(source))]
    assert silent == []


def _sentence_files() -> list[str]:
    return [path for path in committed() if path.endswith("sentences.yaml")]


def _sentences() -> Iterator[tuple[str, str, Any]]:
    for path, source in _texts(_sentence_files()):
        for key, texts in yaml.safe_load(source).items():
            yield path, key, texts


def _places(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_every_sentence_stands_in_spanish_and_english() -> None:
    lacking = [(path, key) for path, key, texts in _sentences() if set(texts) != {"es", "en"}]
    assert lacking == []
    assert len(_sentence_files()) > len(ROOMS)


def test_both_languages_have_the_same_places() -> None:
    different = [
        (path, key) for path, key, texts in _sentences() if _places(texts["es"]) != _places(texts["en"])
    ]
    assert different == []
    numbered = [
        (path, key)
        for path, key, texts in _sentences()
        if not all(p.isidentifier() for p in _places(texts["es"]))
    ]
    assert numbered == []


def test_sentences_are_cleanly_written() -> None:
    unclean = [
        (path, key)
        for path, key, texts in _sentences()
        if _margins(texts["es"]) != _margins(texts["en"])
        or not all(_is_paired(text) for text in texts.values())
        or not _opens_its_questions(texts["es"])
    ]
    assert unclean == []


def _margins(text: str) -> tuple[str, str]:
    """White space around the text: sentences that are joined to others have it in both languages."""
    return text[: -len(text.lstrip())], text[len(text.rstrip()) :]


def _is_paired(text: str) -> bool:
    return bool(text.strip()) and all(
        text.count(left) == text.count(right) for left, right in ("«»", "()", "“”")
    )


def _opens_its_questions(spanish: str) -> bool:
    return all(spanish.count(left) == spanish.count(right) for left, right in ("¿?", "¡!"))


def _sentence_calls(source: str, tables: dict[str, Sentences]) -> Iterator[tuple[str, str, set[str] | None]]:
    """The literal ``sentences("key", place=...)`` calls: table, key and places; None where they are not known."""
    tree = ast.parse(source)
    # sentences("key").es is the text with its places still open.
    templates = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in {"es", "en"}
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in tables):
            continue
        key = node.args[0]
        named = {keyword.arg for keyword in node.keywords}
        unknown = None in named or (not named and id(node) in templates)
        if isinstance(key, ast.Constant):
            yield node.func.id, str(key.value), None if unknown else {str(name) for name in named}


def test_code_says_only_sentences_that_exist_and_fills_their_places() -> None:
    wrong = []
    checked = 0
    for path, source in _texts(_modules()):
        if "entences(" not in source or path.endswith("__main__.py"):
            continue
        name = re.sub(r"(/__init__)?\.py$", "", path).replace("/", ".")
        module = import_module(name if name.startswith("recuerdo") else f"recuerdo.{name}")
        tables = {name: value for name, value in vars(module).items() if isinstance(value, Sentences)}
        for table, key, given in _sentence_calls(source, tables):
            checked += 1
            wrong += [(path, key)] if not _fits(tables[table], key, given) else []
    assert wrong == []
    assert checked > 20


def _fits(table: Sentences, key: str, given: set[str] | None) -> bool:
    try:
        sentence = table(key)
    except KeyError:
        return False
    return given is None or _places(sentence.es) == given


FORBIDDEN = {
    "a path of one machine": r"(?<![\w.~])/(?:root|work|home/[a-z]\w*|Users/[A-Za-z]\w*)/",
    "the address of a package index": r"(?i)https?://[^ \"']*/(?:simple|packages)/",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_committed_file_holds(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what])
    paths = [path for path in committed() if not (ROOT / path).is_symlink()]
    found = [
        f"{path}:{number}"
        for path, text in _texts(paths)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_no_notebook_and_no_settings_are_committed() -> None:
    assert [path for path in committed() if path.endswith(".ipynb") or Path(path).name == ".env"] == []


def _locked(lock: str) -> dict[str, str]:
    """Each requirement of a lock file, by name, with everything that follows the name."""
    joined = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in joined.splitlines() if line.strip()]
    return dict(re.split(r"(?=\[|==)", line, maxsplit=1) for line in lines)


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_files_pin_and_hash_everything_and_name_no_address(lock: str) -> None:
    loose = [
        name
        for name, rest in _locked(lock).items()
        if not re.match(r"(\[[\w,-]+\])?==\S+( ;.*?)?(\s+--hash=sha256:[0-9a-f]{64})+$", rest)
    ]
    assert loose == []
    assert "://" not in (ROOT / lock).read_text(encoding="utf-8")


def test_both_lock_files_hold_what_the_project_names_in_the_same_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {re.split(r"[\[<>=~! ]", line, maxsplit=1)[0].lower() for line in project["dependencies"]}
    versions = [
        {name: re.findall(r"==[^ ;]+", _locked(lock).get(name, "")) for name in wanted} for lock in LOCKS
    ]
    assert [name for name in wanted if not versions[0][name]] == []
    assert versions[0] == versions[1]
