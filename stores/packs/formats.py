"""The formats that a pack takes: a file that a program could not read as what it says it is, is refused."""

import csv
import io
from collections.abc import Callable, Mapping

import yaml

from recuerdo.state.plan import NoTwins, TwinKeyError
from recuerdo.state.sentences import Sentence, load_sentences

sentences = load_sentences(__package__)


def _markdown_fault(text: str) -> Sentence | None:
    """Every text is Markdown."""
    return None


def _yaml_fault(text: str) -> Sentence | None:
    try:
        documents = list(yaml.load_all(text, NoTwins))
    # PyYAML lets a date that does not exist, a number of 5,000 digits and endless nesting through as these.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        key = "file_yaml_twice" if isinstance(error, TwinKeyError) else "file_yaml"
        return sentences(key, place=f"{mark.line + 1}:{mark.column + 1}" if mark else "?")
    if documents and all(isinstance(document, dict | list) for document in documents):
        return None
    return sentences("file_yaml_plain")


def _csv_fault(text: str) -> Sentence | None:
    header = text.lstrip().partition("\n")[0]
    # Spreadsheets in Spanish put semicolons between the cells.
    delimiter = ";" if header.count(";") > header.count(",") else ","
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    wanted = 0
    try:
        for row in rows:
            wanted = wanted or len(row)
            if row and len(row) != wanted:
                return sentences("file_csv_columns", line=rows.line_num, found=len(row), wanted=wanted)
    except csv.Error:
        return sentences("file_csv", line=rows.line_num)
    return None


CHECKS: Mapping[str, Callable[[str], Sentence | None]] = {
    ".md": _markdown_fault,
    ".csv": _csv_fault,
    ".yaml": _yaml_fault,
    ".yml": _yaml_fault,
}
"""What is wrong with a text of this suffix, None for nothing."""
