"""Processes in /proc: their parents, their sessions, and which of them belong to a container.

Everything here is read as bytes. A process may give itself any name, and the kernel cuts names in
the middle of a character: no process of the machine may keep us from reading the others.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

MARK = "LOCALKUBE_CONTAINER_ID"  # in the environment of every process of a container


class Entry(NamedTuple):
    pid: int
    parent: int
    session: int
    ticks: int  # CPU time used, user and system
    started: int
    pages: int  # resident
    state: bytes


def entry(pid: int) -> Entry | None:
    text = _read(pid, "stat")
    # The name in parentheses may have any bytes, also parentheses.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) < 22:
        return None  # it has ended
    return Entry(
        pid,
        parent=int(fields[1]),
        session=int(fields[3]),
        ticks=int(fields[11]) + int(fields[12]),
        started=int(fields[19]),
        pages=int(fields[21]),
        state=fields[0],
    )


def start_time(pid: int) -> int:
    """In ticks since boot; 0 if there is no such process."""
    found = entry(pid)
    return 0 if found is None else found.started


def only_child(pid: int) -> int:
    """The child of a process with one child; the process itself if the child has ended already, or
    if nothing of /proc can be read now."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_bytes().split()
        return int(children[0]) if children else pid
    except OSError:  # a kernel without this file
        pass
    try:
        return next((e.pid for e in everyone() if e.parent == pid), pid)
    except OSError:
        return pid


def everyone() -> Iterator[Entry]:
    for name in os.listdir("/proc"):
        if name.isdigit() and (found := entry(int(name))) is not None:
            yield found


def own_memory(pid: int) -> int:
    """In bytes, without pages of files, which processes share."""
    lines = _read(pid, "status").splitlines()
    kib = (line.split()[1] for line in lines if line.startswith((b"RssAnon:", b"RssShmem:")))
    return sum(map(int, kib)) * 1024


def of_containers(leaders: Mapping[int, str], reaper: int) -> Iterator[tuple[str, Entry]]:
    """The live processes of containers, each with its container. `leaders` has, by pid, the
    processes whose container is known; `reaper` is the parent of orphans.

    A process may leave its session, and its parent may end. What it cannot leave is the tree of its
    ancestors, up to one that belongs to a container: by its pid, by its session, or by its process
    namespace, where the container has one of its own. Where it has none, an orphan becomes a child
    of the reaper, and its environment has the container's mark."""
    table = {e.pid: e for e in everyone() if e.state != b"Z"}
    shared = ("", _namespace(os.getpid()))
    spaces = {
        space: container
        for pid, container in leaders.items()
        if (space := _namespace(pid)) not in shared
    }
    known: dict[int, str | None] = {}

    def of(e: Entry) -> str | None:
        found = leaders.get(e.pid) or leaders.get(e.session)
        if not found and spaces:
            found = spaces.get(_namespace(e.pid))
        if not found and e.parent == reaper:
            found = variable(e.pid, MARK)
        return found

    def climb(pid: int) -> str | None:
        path: list[int] = []
        found: str | None = None
        while pid in table and pid not in known:
            path.append(pid)
            known[pid] = None  # also ends the climb, should pids have been reused meanwhile
            if found := of(table[pid]):
                break
            pid = table[pid].parent
        else:
            found = known.get(pid)
        known.update(dict.fromkeys(path, found))
        return found

    for e in table.values():
        if container := climb(e.pid):
            yield container, e


def marked(leaders: set[int], marks: set[bytes]) -> set[int]:
    """The live processes in these sessions, or with one of these marks."""
    return {
        e.pid
        for e in everyone()
        if e.state != b"Z" and (e.session in leaders or not marks.isdisjoint(_environment(e.pid)))
    }


def descendants(pid: int) -> set[int]:
    table = list(everyone())
    found = {pid}
    while more := {e.pid for e in table if e.parent in found} - found:
        found |= more
    return found - {pid}


def variable(pid: int, name: str) -> str:
    """A variable of the environment that the process started with; empty if there is none."""
    start = f"{name}=".encode()
    found = (each.removeprefix(start) for each in _environment(pid) if each.startswith(start))
    return next(found, b"").decode(errors="replace")


def _environment(pid: int) -> list[bytes]:
    return _read(pid, "environ").split(b"\0")


def _namespace(pid: int) -> str:
    """The process namespace of a process; empty if we may not know it."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def _read(pid: int, name: str) -> bytes:
    """Empty if the process has ended, or if we may not read it."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
