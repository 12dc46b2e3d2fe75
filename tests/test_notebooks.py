"""Every notebook runs from its source to its end, without a key and with nothing set up (issue 2, point 7)."""

import os
from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "notebooks").glob("*.py"))
VARIABLES = ("DATABASE_URL", "CHROMA_URL", "OPENAI_", "RECUERDO_", "LANGSMITH_", "LANGCHAIN_")
CELL_SECONDS = 120


def test_there_are_notebooks() -> None:
    assert SOURCES


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_the_notebook_runs(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _leave_nothing_set(tmp_path, monkeypatch)
    notebook = jupytext.read(source)
    NotebookClient(notebook, timeout=CELL_SECONDS, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert shown, "a notebook shows something"
    assert [output for cell in shown for output in cell.outputs if _is_noise(output)] == []
    assert [str(path) for path in tmp_path.rglob("postmaster.pid")] == [], "the embedded server has ended"


def _leave_nothing_set(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel sees no settings of the developer's, and makes its temporary folder in ``folder``."""
    for name in [name for name in os.environ if name.startswith(VARIABLES)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TMPDIR", str(folder))


def _is_noise(output: NotebookNode) -> bool:
    return output.output_type == "error" or output.get("name") == "stderr"
