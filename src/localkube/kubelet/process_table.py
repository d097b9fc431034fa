"""Processes in /proc: their parents, their sessions, and which of them belong to a container."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Entry(NamedTuple):
    pid: int
    parent: int
    session: int
    ticks: int  # CPU time used, user and system
    started: int
    pages: int  # resident
    state: str


def entry(pid: int) -> Entry | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in parentheses may have any characters, also parentheses.
    fields = text[text.rindex(")") + 2 :].split()
    state, parent, session = fields[0], int(fields[1]), int(fields[3])
    return Entry(
        pid,
        parent,
        session,
        ticks=int(fields[11]) + int(fields[12]),
        started=int(fields[19]),
        pages=int(fields[21]),
        state=state,
    )


def start_time(pid: int) -> int:
    """In ticks since boot; 0 if there is no such process."""
    found = entry(pid)
    return 0 if found is None else found.started


def only_child(pid: int) -> int:
    """The child of a process with one child; the process itself if the child has ended already."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # a kernel without this file
        children = [str(e.pid) for e in everyone() if e.parent == pid]
    return int(children[0]) if children else pid


def everyone() -> Iterator[Entry]:
    for name in os.listdir("/proc"):
        if name.isdigit() and (found := entry(int(name))) is not None:
            yield found


def own_memory(pid: int) -> int:
    """In bytes, without pages of files, which processes share."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    kib = (line.split()[1] for line in lines if line.startswith(("RssAnon:", "RssShmem:")))
    return sum(map(int, kib)) * 1024


def members(reaper: int, leaders: set[int], known: set[int], mark: bytes) -> set[int]:
    """The live processes of a container: those in the sessions of its leaders, orphans with the
    container's mark (children of the reaper that it did not start), and all their descendants."""
    table = [e for e in everyone() if e.state != "Z"]
    found = {e.pid for e in table if e.session in leaders}
    found |= {
        e.pid
        for e in table
        if mark and e.parent == reaper and e.pid not in known and has_mark(e.pid, mark)
    }
    return _with_descendants(found, table) - (known - leaders)


def marked(leaders: set[int], marks: set[bytes]) -> set[int]:
    """The live processes in these sessions, or with one of these marks."""
    return {
        e.pid
        for e in everyone()
        if e.state != "Z" and (e.session in leaders or any(has_mark(e.pid, m) for m in marks))
    }


def descendants(pid: int) -> set[int]:
    return _with_descendants({pid}, list(everyone())) - {pid}


def has_mark(pid: int, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def variable(pid: int, name: str) -> str:
    """A variable of the environment that the process started with; empty if there is none."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    start = f"{name}=".encode()
    found = (each.removeprefix(start) for each in environment if each.startswith(start))
    return next(found, b"").decode(errors="replace")


def _with_descendants(found: set[int], table: list[Entry]) -> set[int]:
    while more := {e.pid for e in table if e.parent in found} - found:
        found |= more
    return found
