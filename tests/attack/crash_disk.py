"""A disk that is cut off: what its files may look like, from the journal of file_journal.c.

A file has content that was flushed, and changes after that, which a power cut may undo one by one.
A name is as durable as its directory was flushed. After kill -9 all of it is there, but for the
operation that was under way.
"""

import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_HEAD = struct.Struct("<cHQQ")
SECTOR = 512  # what a disk writes as a whole
PAGE = 4096  # and what the kernel does, before it looks whether the program is still alive


@dataclass(frozen=True)
class Operation:
    kind: str
    path: str
    offset: int
    data: bytes

    def __str__(self) -> str:
        return f"{self.kind} {self.path} at {self.offset}, {len(self.data)} bytes"


def read_journal(path: Path) -> Iterator[Operation]:
    raw = path.read_bytes()
    place = 0
    while place < len(raw):
        kind, size, offset, length = _HEAD.unpack_from(raw, place)
        place += _HEAD.size
        name = raw[place : place + size].decode()
        place += size
        has_data = kind in b"wr"
        data = raw[place : place + length] if has_data else b""
        place += length if has_data else 0
        yield Operation(kind.decode(), name, offset, data)


@dataclass
class _File:
    flushed: bytes = b""
    since: list[Operation] = field(default_factory=list)

    def content(self, kept: list[Operation] | None = None) -> bytes:
        made = bytearray(self.flushed)
        for each in self.since if kept is None else kept:
            apply(made, each)
        return bytes(made)


def apply(content: bytearray, each: Operation) -> None:
    if each.kind == "t":
        del content[each.offset :]
        content.extend(bytes(each.offset - len(content)))
    else:
        content.extend(bytes(max(0, each.offset - len(content))))
        content[each.offset : each.offset + len(each.data)] = each.data


def pieces(each: Operation, unit: int) -> list[Operation]:
    """A write, cut where a unit of the file ends: no sector, and no page, is written in part."""
    ends = [*range(each.offset // unit * unit + unit, each.offset + len(each.data), unit)]
    starts = [each.offset, *ends]
    ends.append(each.offset + len(each.data))
    return [
        Operation("w", each.path, start, each.data[start - each.offset : end - each.offset])
        for start, end in zip(starts, ends, strict=True)
    ]


Contents = dict[str, bytes]


class Disk:
    """All operations so far."""

    def __init__(self) -> None:
        self._files: list[_File] = []
        self._names: dict[str, int] = {}  # as programs see them
        self._durable: dict[str, int] = {}  # as of the last flush of the directory
        self._renamed: list[Operation] = []  # since then: c, r, u in their order

    def do(self, each: Operation) -> None:
        match each.kind:
            case "c":
                self._files.append(_File())
                self._name(each, self._names)
                self._renamed.append(each)
            case "r" | "u":
                self._name(each, self._names)
                self._renamed.append(each)
            case "w" | "t":
                self._files[self._names[each.path]].since.append(each)
            case "s":
                file = self._files[self._names[each.path]]
                file.flushed, file.since = file.content(), []
            case "d":
                self._durable, self._renamed = dict(self._names), []
            case _:
                raise ValueError(each.kind)

    def _name(self, each: Operation, names: dict[str, int], made: int | None = None) -> None:
        if each.kind == "c":
            names[each.path] = len(self._files) - 1 if made is None else made
        elif each.kind == "u":
            names.pop(each.path, None)
        elif each.path in names:
            names[each.data.decode()] = names.pop(each.path)

    def killed(self, begun: Sequence[Operation] = ()) -> Contents:
        """By kill -9, with these pages of the write that was under way."""
        found = {name: self._files[file].content() for name, file in self._names.items()}
        for each in begun:
            content = bytearray(found[each.path])
            apply(content, each)
            found[each.path] = bytes(content)
        return found

    def cut(self, draw: random.Random | None, *, names_kept: int | None) -> Contents:
        """By a power cut. `draw` None: nothing is kept of what was not flushed; otherwise any part
        of it. `names_kept`: of the changes of names, so many of the first (None: all)."""
        names = dict(self._durable)
        made = len(self._files) - sum(each.kind == "c" for each in self._renamed)
        for number, each in enumerate(self._renamed):
            is_kept = names_kept is None or number < names_kept
            if is_kept:
                self._name(each, names, made)
            made += each.kind == "c"
        return {name: self._left(self._files[file], draw) for name, file in names.items()}

    @property
    def unflushed_names(self) -> int:
        return len(self._renamed)

    def _left(self, file: _File, draw: random.Random | None) -> bytes:
        kept: list[Operation] = []
        for each in file.since if draw is not None else ():
            assert draw is not None
            if each.kind == "t":
                if draw.random() < 0.5:
                    kept.append(each)
                continue
            # Sector by sector, in no order: so a write may be torn anywhere.
            chance = draw.choice((0.0, 0.5, 1.0))
            for piece in pieces(each, SECTOR):
                if draw.random() < chance:
                    kept.append(piece)
        return file.content(kept)
