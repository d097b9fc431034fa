"""Rows of CSV and JSON files, each with its file and line, so that errors can name them."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpupool.replay.trace import TraceError
from kubeclient.quantity import ParseError, milli_value, parse, value

_MOST_BYTES = 512 * 2**20
_MOST_ROWS = 5_000_000
_MOST = 2**40  # the largest number that is accepted
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class InputRow:
    where: str  # file and line, or file and item
    fields: dict[str, str]

    def wrong(self, column: str, wanted: str) -> TraceError:
        return TraceError(
            f"{self.where}: column {column}: wanted {wanted}, found {self.fields[column]!r}"
        )

    def column(self, *names: str) -> str:
        """The first of these columns that the row has."""
        for name in names:
            if name in self.fields:
                return name
        there = ", ".join(self.fields)
        raise TraceError(f"{self.where}: wanted a column {' or '.join(names)}, found {there}")

    def has(self, *names: str) -> bool:
        return any(self.fields.get(name) for name in names)

    def text(self, *names: str) -> str:
        column = self.column(*names)
        found = self.fields[column].strip()
        if not found or len(found) > 253:
            raise self.wrong(column, "a name of up to 253 characters")
        return found

    def number(self, *names: str, most: int = _MOST) -> int:
        column = self.column(*names)
        text = self.fields[column].strip()
        # Length before value: to parse a number of a million digits takes long.
        if not (text.isascii() and text.isdigit()) or len(text) > 15 or int(text) > most:
            raise self.wrong(column, f"a whole number from 0 to {most}")
        return int(text)

    def cpu_milli(self) -> int:
        if "cpu" not in self.fields:
            return self.number("cpu_milli")
        return self._quantity("cpu", milli=True)

    def memory_mib(self) -> int:
        if "memory" not in self.fields:
            return self.number("memory_mib")
        amount = self._quantity("memory", milli=False)
        # Nobody means so little: who writes 64 means 64Gi, and would get nodes where nothing fits.
        if 0 < amount < _MIB:
            wanted = "at least 1Mi, such as 16Gi (a number without a unit is bytes)"
            raise self.wrong("memory", wanted)
        return -(-amount // _MIB)

    def _quantity(self, column: str, *, milli: bool) -> int:
        try:
            found = parse(self.fields[column].strip())
        except ParseError:
            raise self.wrong(column, 'a quantity such as "500m", "4" or "16Gi"') from None
        amount = milli_value(found) if milli else value(found)
        if not 0 <= amount <= _MOST * _MIB:
            raise self.wrong(column, "a quantity that machines have")
        return amount


def rows_of(path: Path, kind: str, content: str | None = None) -> Iterator[InputRow]:
    """`kind`: "pods" or "nodes", the key of the list in a JSON object. `content`: of the file, if
    it was read already; a pipe can be read once."""
    content = read_text(path) if content is None else content
    rows = _json_rows(path, content, kind) if is_json(content) else _csv_rows(path, content)
    for count, row in enumerate(rows):
        if count >= _MOST_ROWS:
            raise TraceError(f"{path}: more than {_MOST_ROWS} rows")
        yield row


def read_text(path: Path) -> str:
    try:
        with path.open("rb") as opened:  # a pipe has no size that could be asked for before
            raw = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise TraceError(
            f"{path}: wanted a file that you may read, found: {error.strerror}"
        ) from error
    if len(raw) > _MOST_BYTES:
        raise TraceError(f"{path}: wanted at most {_MOST_BYTES // _MIB} MiB, found a larger file")
    try:
        # Spreadsheet programs write a byte order mark, which would be part of the first column's
        # name.
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        words = f"wanted CSV or JSON as UTF-8 text, found other bytes at byte {error.start}"
        raise TraceError(f"{path}: {words}; is it the right file?") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_json(content: str) -> bool:
    return content.lstrip()[:1] in ("{", "[")


def parsed_json(path: Path, content: str) -> Any:
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        raise TraceError(
            f"{path}:{error.lineno}: column {error.colno}: this is not JSON: {error.msg}"
        ) from None
    except ValueError:  # Python reads no number of more than some thousand digits
        raise TraceError(f"{path}: a number in this JSON is too long") from None
    except RecursionError:
        raise TraceError(f"{path}: this JSON is nested too deeply") from None


def _csv_rows(path: Path, content: str) -> Iterator[InputRow]:
    reader = csv.reader(content.splitlines())
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        if not header:
            raise TraceError(f"{path}: the file is empty; wanted a line with column names")
        if twice := sorted({name for name in header if name and header.count(name) > 1}):
            raise TraceError(f"{path}:1: column {twice[0]} is there twice; remove one of them")
        for cells in reader:
            if not cells:
                continue
            where = f"{path}:{reader.line_num}"
            if len(cells) != len(header):
                raise TraceError(
                    f"{where}: wanted {len(header)} columns as in line 1, found {len(cells)}"
                )
            yield InputRow(where, dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise TraceError(f"{path}:{reader.line_num}: this is not CSV: {error}") from None


def _json_rows(path: Path, content: str, kind: str) -> Iterator[InputRow]:
    found = parsed_json(path, content)
    if isinstance(found, dict):
        found = found.get(kind)
    if not isinstance(found, list):
        raise TraceError(
            f"{path}: wanted a list, or an object with a list {kind!r}, or a snapshot of a cluster"
            " (gpupool snapshot)"
        )
    for at, item in enumerate(found):
        where = f"{path}: {kind}[{at}]"
        if not isinstance(item, dict):
            raise TraceError(f"{where}: wanted an object")
        yield InputRow(where, {str(key).lower(): _as_text(value) for key, value in item.items()})


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return "|".join(str(item) for item in value)
    return str(value)
