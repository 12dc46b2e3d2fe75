"""What makes no difference to a pack, what does, and what is refused."""

import os
import unicodedata
from pathlib import Path

import pytest

from recuerdo.state.errors import SettingsError
from recuerdo.stores.packs import Pack, read_folder
from recuerdo.stores.packs.folder import LARGEST_PACK, MOST_FILES
from recuerdo.stores.packs.pack import manifest_of
from tests.stores.packs.conftest import RULES, WriteFolder

BOM = b"\xef\xbb\xbf"

KNOWN_PIN = "8f23efd4deef55b2e1bbc4052a76cd01b86006fea1a9a0b44f2c6ee327a683c8"
"""Pin of RULES: it may never change, or every pack that stands would be another."""


def manifest(folder: Path) -> bytes:
    pack = read_folder(folder)
    return manifest_of(pack.name, pack.files)


def test_or_14_same_files_same_pin(write: WriteFolder) -> None:
    first, second = read_folder(write("a", RULES)), read_folder(write("b", RULES))
    assert first == second
    assert first.pin == KNOWN_PIN
    assert first.reference == f"tarifas@{KNOWN_PIN[:12]}"


WRITTEN_ELSEWHERE: dict[str, dict[str, str | bytes]] = {
    "windows line ends": {path: text.replace("\n", "\r\n") for path, text in RULES.items()},
    "old line ends": {path: text.replace("\n", "\r") for path, text in RULES.items()},
    "byte-order mark": {path: BOM + text.encode() for path, text in RULES.items()},
    "another order": dict(reversed(RULES.items())),
    "hidden files": {
        **RULES,
        ".DS_Store": b"\0\1",
        ".git/config": "x",
        "normas/.swp": b"\xff",
        "Thumbs.db": b"\0",
    },
}


@pytest.mark.parametrize("how", WRITTEN_ELSEWHERE)
def test_or_14_what_makes_no_difference(write: WriteFolder, how: str) -> None:
    assert manifest(write("there", WRITTEN_ELSEWHERE[how])) == manifest(write("here", RULES))


def test_or_14_dates_and_rights_make_no_difference(write: WriteFolder) -> None:
    folder = write("a", RULES)
    before = manifest(folder)
    os.utime(folder / "salidas.md", (0, 0))
    (folder / "salidas.md").chmod(0o755)
    assert manifest(folder) == before


def test_or_14_the_form_of_accents_in_names_makes_no_difference(write: WriteFolder) -> None:
    composed, decomposed = (unicodedata.normalize(form, "habitación.md") for form in ("NFC", "NFD"))
    assert composed != decomposed
    assert manifest(write("a", {composed: "x"})) == manifest(write("b", {decomposed: "x"}))


@pytest.mark.parametrize(
    "changed",
    [
        {"salidas.md": RULES["salidas.md"].replace("11:00", "11:01")},
        {"salidas.md": RULES["salidas.md"] + "\n"},
        {"salidas.md": RULES["salidas.md"].rstrip("\n")},
        {"salidas.md": RULES["salidas.md"].replace("Check", "check")},
        {"salidas.md": RULES["salidas.md"].replace(" ", "\u00a0")},
        {"tarifas.csv": unicodedata.normalize("NFD", RULES["tarifas.csv"])},
        {"otra.md": "x"},
    ],
)
def test_or_14_any_other_byte_makes_another_pin(write: WriteFolder, changed: dict[str, str | bytes]) -> None:
    assert read_folder(write("a", {**RULES, **changed})).pin != KNOWN_PIN


def test_or_14_names_count(write: WriteFolder) -> None:
    folder = write("a", RULES)
    assert read_folder(folder, "otras").pin != KNOWN_PIN
    (folder / "salidas.md").rename(folder / "horas.md")
    assert read_folder(folder).pin != KNOWN_PIN


def test_or_14_a_line_end_is_levelled_once_and_for_all(write: WriteFolder) -> None:
    once = read_folder(write("a", {"a.md": "a\r\r\nb\n\rc"}))
    again = read_folder(write("b", {"a.md": once.files[0].text}))
    assert once.files[0].text == "a\n\nb\n\nc"
    assert once.pin == again.pin


REFUSED: dict[str, tuple[str, bytes, str]] = {
    "binary": ("norma.md", b"a\0b", "control characters"),
    "escape": ("norma.md", b"a\x1b[2Jb", "control characters"),
    "latin": ("norma.md", "habitación".encode("latin-1"), "not UTF-8"),
    "utf-16": ("norma.md", "habitación".encode("utf-16"), "not UTF-8"),
    "surrogate": ("norma.md", b"\xed\xa0\x80", "not UTF-8"),
    "too large": ("norma.md", b"a" * (LARGEST_PACK + 1), f"{LARGEST_PACK} bytes"),
    "empty": ("norma.md", b"", "empty"),
    "blank": ("norma.md", b"\r\n \t\n", "empty"),
    "only a mark": ("norma.md", BOM, "empty"),
    "unknown suffix": ("norma.docx", b"a", ".md, .csv, .yaml, .yml"),
    "no suffix": ("norma", b"a", ".md"),
    "yaml": ("norma.yaml", b"a: [1", "YAML"),
    "yaml twice": ("norma.yml", b"a: 1\na: 2\n", "same key twice (line:column 2:1)"),
    "yaml date": ("norma.yaml", b"a: 2025-02-31\n", "YAML"),
    "yaml nested": ("norma.yaml", b"[" * 5000, "YAML"),
    "yaml object": ("norma.yaml", b"a: !!python/name:os.system\n", "YAML"),
    "yaml text": ("norma.yaml", b"solo un texto\n", "keys and values"),
    "yaml comment": ("norma.yaml", b"# nada\n", "keys and values"),
    "csv quote": ("norma.csv", b'a,b\n"1,2\n', "CSV"),
    "csv columns": ("norma.csv", b"a,b\n1,2\n1,2,3\n", "line 3 does not have the columns of the header: 3"),
    "csv semicolons": ("norma.csv", b"a;b\n1;2\n3\n", "columns of the header: 1 instead of 2"),
    "backslash": ("normas\\..\\norma.md", b"a", "not every machine"),
    "colon": ("c:norma.md", b"a", "not every machine"),
    "blank at the end": ("norma.md ", b"a", "not every machine"),
    "line feed": ("nor\nma.md", b"a", "not every machine"),
    "right to left": ("nor\u202ema.md", b"a", "not every machine"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_or_14_refused_with_the_name_of_the_file(write: WriteFolder, what: str) -> None:
    path, content, reason = REFUSED[what]
    folder = write("a", {**RULES, path: content})
    with pytest.raises(SettingsError) as refused:
        read_folder(folder)
    assert str(folder / path) in str(refused.value)
    assert reason in str(refused.value)


def test_or_14_a_name_that_is_no_text_is_refused(write: WriteFolder) -> None:
    folder = write("a", RULES)
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.md")).write_text("a")
    with pytest.raises(SettingsError, match="not every machine") as refused:
        read_folder(folder)
    str(refused.value).encode()


@pytest.mark.parametrize("twin", ["Salidas.md", "SALIDAS.MD", "Normas/mascotas.yaml"])
def test_or_14_names_that_differ_by_case_only_are_refused(write: WriteFolder, twin: str) -> None:
    folder = write("a", {**RULES, twin: "a: b"})
    with pytest.raises(SettingsError, match="but for capitals"):
        read_folder(folder)


def test_or_14_names_that_differ_by_the_form_of_accents_are_refused(write: WriteFolder) -> None:
    twins = {unicodedata.normalize(form, "habitación.md"): "x" for form in ("NFC", "NFD")}
    with pytest.raises(SettingsError, match="form of its accents"):
        read_folder(write("a", dict(twins)))


@pytest.mark.parametrize("target", ["/etc/hostname", "salidas.md", "../outside.md", "nowhere.md"])
def test_or_14_a_link_is_refused(write: WriteFolder, target: str) -> None:
    folder = write("a", RULES)
    (folder.parent / "outside.md").write_text("fuera")
    (folder / "enlace.md").symlink_to(target)
    with pytest.raises(SettingsError, match=r"enlace\.md.*symbolic link"):
        read_folder(folder)


def test_or_14_a_folder_that_is_a_link_is_refused(write: WriteFolder, tmp_path: Path) -> None:
    folder = write("a", RULES)
    (tmp_path / "fuera").mkdir()
    (tmp_path / "fuera" / "norma.md").write_text("fuera")
    (folder / "enlace").symlink_to(tmp_path / "fuera", target_is_directory=True)
    with pytest.raises(SettingsError, match=r"enlace cannot go.*symbolic link"):
        read_folder(folder)


def test_or_14_a_pipe_is_refused_and_not_waited_for(write: WriteFolder) -> None:
    folder = write("a", RULES)
    os.mkfifo(folder / "norma.md")
    with pytest.raises(SettingsError, match=r"norma\.md.*no regular file"):
        read_folder(folder)


def test_or_14_the_files_together_have_a_limit(write: WriteFolder) -> None:
    half = "a" * (LARGEST_PACK // 2)
    with pytest.raises(SettingsError, match=r"c\.md"):
        read_folder(write("a", {"a.md": half, "b.md": half, "c.md": "x"}))
    many: dict[str, str | bytes] = {f"{number}.md": "x" for number in range(MOST_FILES + 1)}
    with pytest.raises(SettingsError, match=f"{MOST_FILES} files"):
        read_folder(write("b", many))


@pytest.mark.parametrize("files", [{}, {".hidden.md": "x"}, {"normas/.hidden": "x"}])
def test_or_14_a_folder_without_files_is_refused(write: WriteFolder, files: dict[str, str | bytes]) -> None:
    with pytest.raises(SettingsError, match="has no file to build"):
        read_folder(write("a", files))


def test_or_14_no_folder(tmp_path: Path) -> None:
    for folder in (tmp_path / "nowhere", tmp_path / "file"):
        (tmp_path / "file").write_text("x")
        with pytest.raises(SettingsError, match="cannot be read"):
            read_folder(folder, "tarifas")


@pytest.mark.parametrize(
    "name", ["Tarifas", "tarifas@1", "a b", "", "1a", "tarifas\n", "á", "a" * 65, "../a"]
)
def test_or_14_a_name_that_a_plan_could_not_say_is_refused(write: WriteFolder, name: str) -> None:
    with pytest.raises(SettingsError, match="cannot be the name of a pack"):
        read_folder(write("a", RULES), name)


def test_or_14_semicolons_and_quoted_cells_are_csv(write: WriteFolder) -> None:
    files: dict[str, str | bytes] = {
        "a.csv": 'nota;precio\n"doble; con vistas";90,50\n',
        "b.csv": 'nota,precio\n"dos\nlíneas",90\n\n',
        "c.yaml": "a: 1\n---\n- b\n",
    }
    pack: Pack = read_folder(write("a", files))
    assert [file.path for file in pack.files] == ["a.csv", "b.csv", "c.yaml"]
