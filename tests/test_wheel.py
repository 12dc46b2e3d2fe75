"""What is built and installed is the whole house under one name, and works away from the checkout."""

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("graph", "nodes", "state", "stores")

USE_IT = """
import importlib, json, pkgutil, sys
from importlib.metadata import distribution
sys.path.insert(0, sys.argv[1])
import recuerdo
import recuerdo.stores.plans as plans
for module in pkgutil.walk_packages(recuerdo.__path__, "recuerdo."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
(command,) = distribution("recuerdo").entry_points.select(group="console_scripts")
command.load()
print(json.dumps({
    "homes": sorted({m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "recuerdo"}),
    "plans": {name: plans.load_plan(name).name for name in plans.shipped_plans()},
    "face": [name for name in recuerdo.__all__ if getattr(recuerdo, name, None) is None],
}))
"""


def _git_files() -> list[str]:
    """What is committed or about to be."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(path for path in output.split("\0") if path and (ROOT / path).exists())


@pytest.fixture(scope="module")
def packaged() -> set[str]:
    """The path that each file of the rooms and of the face has inside the package."""
    paths = [path for path in _git_files() if not (ROOT / path).is_symlink()]
    rooms = {f"recuerdo/{path}" for path in paths if path.split("/")[0] in ROOMS}
    return rooms | {path for path in paths if path.startswith("recuerdo/")}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean copy of the checkout, its links kept as links."""
    copy = tmp_path_factory.mktemp("checkout")
    for path in _git_files():
        target = copy / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / path).is_symlink():
            target.symlink_to((ROOT / path).readlink())
        else:
            target.write_bytes((ROOT / path).read_bytes())
    return copy


@pytest.fixture(scope="module")
def built(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist of the checkout and the wheel made from that sdist."""
    folder = tmp_path_factory.mktemp("built")
    _run("build", "--no-isolation", "--outdir", str(folder), str(checkout))
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (wheel,) = built.glob("*.whl")
    return wheel


def _run(module: str, *arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def _names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_every_file_of_the_rooms_and_nothing_else(wheel: Path, packaged: set[str]) -> None:
    inside = {name for name in _names(wheel) if ".dist-info/" not in name}
    assert packaged - inside == set()
    assert inside - packaged == set()
    assert {Path(name).suffix for name in packaged} >= {".py", ".yaml", ".json", ".sql"}
    assert "recuerdo/py.typed" in inside


def test_the_wheel_has_one_top_level_name(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in _names(wheel)}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"recuerdo"}
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith("/top_level.txt"))
        assert archive.read(path).decode().split() == ["recuerdo"]


def test_the_wheel_carries_the_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith("/licenses/LICENSE"))
        assert archive.read(path) == (ROOT / "LICENSE").read_bytes()


def test_the_sdist_holds_the_package_as_real_files(built: Path, packaged: set[str]) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        files = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
        links = [member.name for member in archive.getmembers() if member.issym() or member.islnk()]
    assert packaged - files == set()
    assert links == []


def test_a_wheel_straight_from_the_checkout_is_the_same(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    _run("build", "--no-isolation", "--wheel", "--outdir", str(tmp_path), str(checkout))
    (direct,) = tmp_path.glob("*.whl")
    assert _names(direct) == _names(wheel)


def test_the_installed_wheel_works_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    _run("pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target), str(wheel))
    done = subprocess.run(
        [sys.executable, "-I", "-c", USE_IT, str(target)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    used = json.loads(done.stdout)
    assert [home for home in used["homes"] if not Path(home).is_relative_to(target)] == []
    assert len(used["homes"]) > len(ROOMS)
    assert used["plans"]["trading"] == "trading"
    assert used["face"] == []
