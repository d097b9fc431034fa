"""What a cluster on this machine takes: memory, descriptors, threads, processes, files, mounts."""

import os
from dataclasses import dataclass, fields
from pathlib import Path


@dataclass(frozen=True)
class Size:
    memory_mb: float
    descriptors: int
    threads: int
    processes: int
    files: int
    mounts: int

    def __str__(self) -> str:
        return ", ".join(f"{each.name} {getattr(self, each.name):.0f}" for each in fields(self))


def size_of(pid: int, directory: Path) -> Size:
    """Of the server, of all processes below it, and of its data directory."""
    process = Path(f"/proc/{pid}")
    return Size(
        memory_mb=_memory_mb(process),
        descriptors=len(os.listdir(process / "fd")),
        threads=len(os.listdir(process / "task")),
        processes=len(_below(pid)),
        files=sum(len(files) + len(folders) for _, folders, files in os.walk(directory)),
        mounts=len((process / "mountinfo").read_text().splitlines()),
    )


def _memory_mb(process: Path) -> float:
    for line in (process / "status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


def _below(pid: int) -> set[int]:
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                stat = Path(f"/proc/{name}/stat").read_text()
            except OSError:
                continue  # it has just ended
            parents[int(name)] = int(stat.rpartition(")")[2].split()[1])
    found: set[int] = set()
    new = {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return found
