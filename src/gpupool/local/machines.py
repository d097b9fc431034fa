"""Machines that exist without a cluster (`gpupool machines`); node pools can be made of them.

<home>/machines.json alone says whose a machine is, and it is replaced as a whole under the lock of
the home. So a machine is of one cluster at most, whatever is killed, and when. The directory of a
cluster is a second write, and the order of the two does not matter: what a cluster holds that is
not there is free. See docs/decisions/0038-machines.md.
"""

import asyncio
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msgspec

from gpupool.local.home import CannotUse, Home
from localkube.data_directory import write_private

MOST = 10_000  # in all
MOST_AT_ONCE = 1_000
_FILE = "machines.json"
_PREFIX = "machine-"
# The name of a node, and short enough for its label kubernetes.io/hostname.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*")
_LONGEST = 63
_SHOWN = 20  # names in a message


@dataclass(frozen=True, slots=True)
class Machine:
    name: str
    instance_type: str
    cluster: str = ""  # empty: it is free
    pool: str = ""

    @property
    def is_free(self) -> bool:
        return not self.cluster


@dataclass(frozen=True, slots=True)
class Wanted:
    """Machines for one node pool."""

    pool: str
    instance_type: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Machines:
    """All of this home. Changes need the lock: `with home.alone()`."""

    home: Home

    def all(self) -> dict[str, Machine]:
        found = _read(self._file)
        gone = {name for name in _clusters_of(found) if not self.home.has_place(name)}
        return {name: _free(each) if each.cluster in gone else each for name, each in found.items()}

    def add(self, instance_type: str, names: Iterable[str] = (), count: int = 0) -> list[Machine]:
        """Those that are new: with the names, and `count` more with names of our making."""
        known, wanted = self.all(), list(names)
        _check_new(wanted, count, known)
        wanted += _free_names(count, {*known, *wanted})
        new = [Machine(name, instance_type) for name in wanted]
        self._write({**known, **{each.name: each for each in new}})
        return new

    def remove(self, names: Iterable[str]) -> None:
        known, wanted = self.all(), set(names)
        _check_known(wanted, known)
        if used := [known[name] for name in sorted(wanted) if not known[name].is_free]:
            raise CannotUse(
                "\n".join(
                    f'Machine "{each.name}" is a node of cluster "{each.cluster}" (pool '
                    f'"{each.pool}"): remove the node there first. Nothing was removed.'
                    for each in used[:_SHOWN]
                )
            )
        self._write({name: each for name, each in known.items() if name not in wanted})

    def claim(self, cluster: str, wanted: Iterable[Wanted], *, is_new: bool = False) -> None:
        """All for the cluster, or none. `is_new`: what its name holds is of one that is deleted."""
        known = self.all()
        if is_new:
            known = _released(known, cluster)
        wishes = tuple(wanted)
        if problems := [text for wish in wishes for text in _problems(wish, cluster, known)]:
            raise CannotUse("\n".join(problems[:_SHOWN]))
        claimed = {
            name: replace(known[name], cluster=cluster, pool=wish.pool)
            for wish in wishes
            for name in wish.names
        }
        if is_new or any(known[name] != each for name, each in claimed.items()):
            self._write({**known, **claimed})

    def release(self, cluster: str, names: Collection[str] | None = None) -> None:
        """Those of the cluster with these names; None: all."""
        known = _read(self._file)
        left = _released(known, cluster, names)
        if left != known:
            self._write(left)

    def version(self) -> object:
        """Another one after each change. None: there is no machine."""
        try:
            found = self._file.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    @property
    def _file(self) -> Path:
        return self.home.root / _FILE

    def _write(self, machines: Mapping[str, Machine]) -> None:
        if not machines and not self._file.exists():
            return
        data = {"machines": [asdict(machines[name]) for name in sorted(machines)]}
        write_private(self._file, json.dumps(data, indent=1).encode() + b"\n")


class ClusterMachines:
    """Those of one cluster, for its server."""

    def __init__(self, machines: Machines, cluster: str) -> None:
        self._machines = machines
        self._cluster = cluster
        # The file is asked about with every change of a node, and changes seldom.
        self._read: tuple[object, dict[str, Machine]] = (None, {})

    def held(self) -> dict[str, Machine]:
        version = self._machines.version()
        if version != self._read[0]:
            try:
                known = self._machines.all()
            except CannotUse:  # damaged: a claim says so, and nothing is given back
                known = {}
            held = {name: each for name, each in known.items() if each.cluster == self._cluster}
            self._read = (version, held)
        return self._read[1]

    def misfits(self, wanted: Wanted) -> list[str]:
        """Machines of another type, in words. Those that are not there yet may still be added."""
        try:
            known = self._machines.all()
        except CannotUse:  # damaged: a claim says so
            return []
        found = [known[name] for name in wanted.names if name in known]
        wrong = [each for each in found if each.instance_type != wanted.instance_type]
        return [_of_another_type(wanted, each) for each in wrong[:_SHOWN]]

    async def claim(self, wanted: Wanted) -> str:
        """Why not; empty: the cluster has them."""
        # In a thread: others may hold the lock for a second.
        return await asyncio.to_thread(self._claim, wanted)

    async def release(self, names: Collection[str]) -> None:
        await asyncio.to_thread(self._release, names)

    def _claim(self, wanted: Wanted) -> str:
        try:
            with self._machines.home.alone():
                self._machines.claim(self._cluster, (wanted,))
        except CannotUse as error:
            return error.message
        except OSError as error:  # a full disk
            return str(error)
        return ""

    def _release(self, names: Collection[str]) -> None:
        with self._machines.home.alone():
            self._machines.release(self._cluster, names)


def _of_another_type(wish: Wanted, machine: Machine) -> str:
    return (
        f'Pool "{wish.pool}": wanted machines of type {wish.instance_type}; "{machine.name}" is '
        f"of type {machine.instance_type}."
    )


def _problems(wish: Wanted, cluster: str, known: Mapping[str, Machine]) -> Iterable[str]:
    for name in wish.names:
        machine = known.get(name)
        if machine is None:
            yield f'Pool "{wish.pool}": there is no machine "{name}". See: gpupool machines'
        elif machine.instance_type != wish.instance_type:
            yield _of_another_type(wish, machine)
        elif machine.cluster not in ("", cluster):
            yield (
                f'Pool "{wish.pool}": machine "{name}" is a node of cluster "{machine.cluster}". '
                "Free ones: gpupool machines"
            )
        elif machine.pool not in ("", wish.pool):
            yield (
                f'Pool "{wish.pool}": machine "{name}" is a node of pool "{machine.pool}" of '
                "the same cluster."
            )


def _released(
    machines: Mapping[str, Machine], cluster: str, names: Collection[str] | None = None
) -> dict[str, Machine]:
    def goes(each: Machine) -> bool:
        return each.cluster == cluster and (names is None or each.name in names)

    return {name: _free(each) if goes(each) else each for name, each in machines.items()}


def _free(machine: Machine) -> Machine:
    return replace(machine, cluster="", pool="")


def _clusters_of(machines: Mapping[str, Machine]) -> set[str]:
    return {each.cluster for each in machines.values() if each.cluster}


def _check_new(names: list[str], count: int, known: Mapping[str, Machine]) -> None:
    seen: set[str] = set()
    for name in names:
        if not _is_name(name):
            raise CannotUse(
                f'"{name[:100]}" cannot be the name of a machine: wanted lower-case letters, '
                f'digits, "-" and ".", at most {_LONGEST}, a letter or digit at both ends.'
            )
        if name in known or name in seen:
            raise CannotUse(f'There is a machine "{name}" already. Nothing was added.')
        seen.add(name)
    more = len(names) + count
    if more > MOST_AT_ONCE:
        raise CannotUse(f"Wanted at most {MOST_AT_ONCE} machines at once, found {more}.")
    if len(known) + more > MOST:
        raise CannotUse(
            f"Wanted at most {MOST} machines in all: {len(known)} are there, {more} more are asked "
            "for. Remove some with: gpupool machines remove"
        )


def _check_known(names: Iterable[str], known: Mapping[str, Machine]) -> None:
    if unknown := sorted(name for name in names if name not in known):
        shown = ", ".join(f'"{name[:100]}"' for name in unknown[:_SHOWN])
        raise CannotUse(f"There is no machine {shown}. See: gpupool machines")


def _free_names(count: int, taken: Collection[str]) -> list[str]:
    numbers = range(1, len(taken) + count + 1)
    free = (name for number in numbers if (name := f"{_PREFIX}{number}") not in taken)
    return [name for name, _ in zip(free, range(count), strict=False)]


class _Saved(msgspec.Struct):
    machines: list[Machine]


def _read(file: Path) -> dict[str, Machine]:
    try:
        saved = msgspec.json.decode(file.read_bytes(), type=_Saved)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CannotUse(f"{file}: wanted a file that you may read, found: {error.strerror}.") from (
            error
        )
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(file) from error
    if not all(map(_has_names, saved.machines)):
        raise _damaged(file)
    return {each.name: each for each in saved.machines}


def _has_names(machine: Machine) -> bool:
    """As gpupool gives them: that of the cluster becomes part of a path."""
    return _is_name(machine.name) and (machine.is_free or _is_name(machine.cluster))


def _is_name(text: str) -> bool:
    return len(text) <= _LONGEST and _NAME.fullmatch(text) is not None


def _damaged(file: Path) -> CannotUse:
    return CannotUse(
        f"{file} is damaged: wanted JSON as gpupool writes it. Delete it, and add your machines "
        "again."
    )
