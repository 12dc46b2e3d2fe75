"""Platform data in files: CSV and JSON, read in a stream and checked row by row, wrong places named by line."""

import csv
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from decimal import Decimal
from pathlib import Path
from stat import S_ISREG
from typing import Any, TypeVar, get_origin

from pydantic import ValidationError

from recuerdo.state.errors import InputError
from recuerdo.state.os_errors import system_reason
from recuerdo.state.sentences import Sentence, load_sentences
from recuerdo.stores.sources.reasons import reason_of
from recuerdo.stores.sources.rows import (
    Alert,
    CourseProgress,
    EconomicEvent,
    Position,
    Profile,
    Quote,
    Row,
    Signal,
)

sentences = load_sentences(__package__)

FILES: Mapping[str, type[Row]] = {
    "profiles": Profile,
    "quotes": Quote,
    "positions": Position,
    "alerts": Alert,
    "signals": Signal,
    "education": CourseProgress,
    "events": EconomicEvent,
}
"""What is loaded from the file of each name, ``.csv`` or ``.json``."""

MOST_PROBLEMS = 20
"""Problems that are shown at once."""

ROWS_AT_ONCE = 5_000

MOST_MEGABYTES = 256
"""Of one file. JSON is read whole, and every key is kept until the end."""

Spell = Callable[[str], str]
RowType = TypeVar("RowType", bound=Row)
Record = tuple[int, Mapping[str, Any]]
"""A line number, from 1, and the fields that stand there."""


class DataError(InputError):
    """What is wrong in files to load, each place as one sentence. Nothing of them was loaded."""

    def __init__(self, sentence: Sentence, problems: tuple[Sentence, ...] = ()) -> None:
        super().__init__(sentence)
        self.problems = problems


@dataclass(frozen=True)
class Reading:
    """How files are read: the zone of instants without offset (None: they are refused), how symbols are
    spelled (None: as they stand there), the clock that no instant may be ahead of, and which markets have a
    calendar (None: neither is checked).
    """

    zone: tzinfo | None = None
    spell: Spell | None = None
    now: datetime | None = None
    has_calendar: Callable[[str], bool] | None = None

    @property
    def context(self) -> dict[str, Any]:
        """For the rows' validators."""
        return dict(vars(self))


def read_folder(folder: Path, reading: Reading) -> Iterator[tuple[type[Row], list[Row]]]:
    """The rows of every file of :data:`FILES` in ``folder``, in batches, each key once per kind.

    Raises InputError at once for a folder without such files, and at the end DataError, if anything in them is
    wrong: whoever writes the batches must undo it then.
    """
    problems = _Problems()
    with suppress(_EnoughError):
        for path, model in _data_files(folder, problems):
            for rows in _batches(path, model, reading, problems):
                if not problems.found:
                    yield model, rows
    problems.raise_if_any()


def read_rows(path: Path, model: type[RowType], reading: Reading | None = None) -> Iterator[list[RowType]]:
    """The rows of one file, in batches, each key once. Raises DataError at the end if anything is wrong."""
    problems = _Problems()
    with suppress(_EnoughError):
        yield from _batches(path, model, reading or Reading(), problems)
    problems.raise_if_any()


class _EnoughError(Exception):
    """No more problems are wanted."""


class _WrongError(Exception):
    """A place beyond which the file cannot be read."""

    def __init__(self, line: int, problem: Sentence) -> None:
        super().__init__(problem.en)
        self.line = line
        self.problem = problem


@dataclass
class _Problems:
    found: list[Sentence] = field(default_factory=list)

    def add(self, path: Path, line: int, problem: Sentence) -> None:
        self.found.append(sentences("problem_at", file=path.name, line=line, problem=problem))
        if len(self.found) == MOST_PROBLEMS:
            self.found.append(sentences("problems_more"))
            raise _EnoughError

    def raise_if_any(self) -> None:
        if self.found:
            joined = Sentence("; ".join(p.es for p in self.found), "; ".join(p.en for p in self.found))
            raise DataError(sentences("data_invalid", problems=joined), tuple(self.found))


def _data_files(folder: Path, problems: _Problems) -> list[tuple[Path, type[Row]]]:
    """The files to load, in the order of FILES. A name that looks like one and is none is a problem: it may be
    a slip, and its data would be missing.
    """
    found: dict[str, Path] = {}
    for path in _listed(folder):
        name = path.stem.casefold()
        if path.suffix.casefold() not in (".csv", ".json"):
            continue
        if name not in FILES:
            problems.add(path, 1, sentences("file_name_unknown", known=", ".join(FILES)))
        elif name in found:
            problems.add(path, 1, sentences("file_twice"))
        else:
            found[name] = path
    if not found and not problems.found:
        raise InputError(sentences("folder_without_data", folder=folder, known=", ".join(FILES)))
    return [(found[name], model) for name, model in FILES.items() if name in found]


def _listed(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError(sentences("folder_missing", folder=folder))
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise InputError(sentences("folder_unreadable", folder=folder, reason=system_reason(error))) from None


def _batches(
    path: Path, model: type[RowType], reading: Reading, problems: _Problems
) -> Iterator[list[RowType]]:
    lines: dict[tuple[Any, ...], int] = {}
    batch: list[RowType] = []
    for line, fields in _records(path, model, problems):
        row = _row(path, line, fields, model, reading, problems)
        if row is None or _is_twice(row, path, line, lines, problems):
            continue
        batch.append(row)
        if len(batch) == ROWS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _row(
    path: Path,
    line: int,
    fields: Mapping[str, Any],
    model: type[RowType],
    reading: Reading,
    problems: _Problems,
) -> RowType | None:
    try:
        return model.model_validate(fields, context=reading.context)
    except ValidationError as error:
        for wrong in error.errors(include_url=False):
            place = ".".join(map(str, wrong["loc"])) or "-"
            problems.add(path, line, sentences("problem_field", field=place, reason=reason_of(wrong)))
        return None


def _is_twice(
    row: Row, path: Path, line: int, lines: dict[tuple[Any, ...], int], problems: _Problems
) -> bool:
    first = lines.setdefault(row.key, line)
    if first != line:
        problems.add(path, line, sentences("row_twice", line=first, keys=", ".join(map(str, row.key))))
    return first != line


def _records(path: Path, model: type[Row], problems: _Problems) -> Iterator[Record]:
    """Every record that can be read; what cannot ends the file with a problem."""
    reader = _csv_records if path.suffix.casefold() == ".csv" else _json_records
    try:
        _check_file(path)
        yield from reader(path, model, problems)
    except _WrongError as wrong:
        problems.add(path, wrong.line, wrong.problem)
    except UnicodeDecodeError:
        problems.add(path, 1, sentences("file_not_utf8"))
    except OSError as error:
        problems.add(path, 1, sentences("file_unreadable", reason=system_reason(error)))


def _check_file(path: Path) -> None:
    """A pipe or a device would be waited for, or read, for ever."""
    found = path.stat()
    if not S_ISREG(found.st_mode):
        raise _WrongError(1, sentences("file_not_regular"))
    if found.st_size > MOST_MEGABYTES * 1_000_000:
        raise _WrongError(1, sentences("file_too_large", most=MOST_MEGABYTES))


def _csv_records(path: Path, model: type[Row], problems: _Problems) -> Iterator[Record]:
    # Spreadsheets write a byte order mark, Windows line ends and, in Spanish, semicolons.
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = file.readline()
        if not header.strip():
            raise _WrongError(1, sentences("file_empty"))
        file.seek(0)
        reader = csv.reader(
            file, delimiter=";" if header.count(";") > header.count(",") else ",", strict=True
        )
        try:
            yield from _table(path, reader, model, problems)
        except csv.Error as error:
            raise _WrongError(reader.line_num, sentences("csv_broken", reason=error)) from None


def _table(path: Path, reader: Any, model: type[Row], problems: _Problems) -> Iterator[Record]:
    columns = [name.strip().casefold() for name in next(reader)]
    before = len(problems.found)
    _check_columns(path, columns, model, problems)
    if len(problems.found) > before:
        return
    line = reader.line_num + 1
    for cells in reader:
        # A quoted text may go over several lines: the record's own line is that of its beginning.
        start, line = line, reader.line_num + 1
        if len(cells) > len(columns):
            problems.add(path, start, sentences("csv_too_many_cells"))
            continue
        given = {name: cell.strip() for name, cell in zip(columns, cells, strict=False) if cell.strip()}
        if given:
            yield start, {name: _from_cell(model, name, cell) for name, cell in given.items()}


def _check_columns(path: Path, columns: list[str], model: type[Row], problems: _Problems) -> None:
    known = ", ".join(model.model_fields)
    for name in dict.fromkeys(columns):
        if name not in model.model_fields:
            reason = sentences("csv_column_unknown", known=known)
        elif columns.count(name) > 1:
            reason = sentences("csv_column_twice")
        else:
            continue
        problems.add(path, 1, sentences("problem_field", field=name or "-", reason=reason))
    for name, wanted in model.model_fields.items():
        if wanted.is_required() and name not in columns:
            reason = sentences("csv_column_missing")
            problems.add(path, 1, sentences("problem_field", field=name, reason=reason))


def _from_cell(model: type[Row], name: str, cell: str) -> Any:
    """A list is written with bars between its items, an object as JSON; all else is its own text."""
    origin = get_origin(model.model_fields[name].annotation)
    if origin is tuple:
        return [item.strip() for item in cell.split("|") if item.strip()]
    if origin is not dict:
        return cell
    try:
        return _DECODER.decode(cell)
    except (ValueError, RecursionError):
        return cell


def _json_records(path: Path, model: type[Row], problems: _Problems) -> Iterator[Record]:
    text = path.read_text(encoding="utf-8-sig")
    if not text.strip():
        raise _WrongError(1, sentences("file_empty"))
    # To the end first: what rows of a broken text seem to lack would only hide where it is broken.
    deque(_items(text), maxlen=0)
    for line, item in _items(text):
        if isinstance(item, dict):
            yield line, item
        else:
            problems.add(path, line, sentences("json_not_a_list"))


def _items(text: str) -> Iterator[tuple[int, Any]]:
    """The items of a JSON list, each with the line that it begins in."""
    place = _past_space(text, 0)
    if text[place] != "[":
        raise _WrongError(1, sentences("json_not_a_list"))
    line, counted = 1, 0
    place = _past_space(text, place + 1)
    sign = "]" if text[place : place + 1] == "]" else ","
    while sign == ",":
        line, counted = line + text.count("\n", counted, place), place
        item, place = _decoded(text, place, line)
        yield line, item
        place = _past_space(text, place)
        sign = text[place : place + 1]
        place = _past_space(text, place + 1) if sign == "," else place
    if sign != "]" or _past_space(text, place + 1) < len(text):
        raise _WrongError(_line(text, place), sentences("json_broken"))


def _decoded(text: str, place: int, line: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, place)
    except json.JSONDecodeError as error:
        raise _WrongError(error.lineno, sentences("json_broken")) from None
    except (ValueError, RecursionError):  # a key twice, NaN, a number of 5,000 digits, endless nesting
        raise _WrongError(line, sentences("json_broken")) from None


def _past_space(text: str, place: int) -> int:
    while text[place : place + 1] in _SPACE and place < len(text):
        place += 1
    return place


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a key twice")
    return fields


def _refuse(constant: str) -> None:
    raise ValueError(constant)


_SPACE = frozenset(" \t\n\r")
# Numbers as they are written: through a float 185.10 would be another one.
_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse, object_pairs_hook=_no_twins)
