"""The directories of local clusters on this machine.

<home>/quotas.json           quotas changed with `gpupool quota set`
<home>/machines.json         machines of `gpupool machines`, and whose they are (machines.py)
<home>/clusters/<name>/      a cluster; a symbolic link if --data-dir names another directory
    .gpupool                 marks the directory as ours, with the version of its format
    cluster.yaml             the cluster file
    state.json               port and pid of the last start, and which cluster file was applied
    server.log
    lock, kubeconfig, ...    files of the server itself
"""

import errno
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gpupool.local import DEFAULT_NAME
from gpupool.local.home_lock import StillHeld, held
from localkube import data_directory
from localkube.data_directory import write_private
from localkube.removal import remove_tree

_MARKER = ".gpupool"
_FORMAT = b"1\n"


class CannotUse(click.ClickException):
    """A directory, name or port that cannot be used; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class ClusterDirectory:
    name: str
    path: Path

    @property
    def cluster_file(self) -> Path:
        return self.path / "cluster.yaml"

    @property
    def state_file(self) -> Path:
        return self.path / "state.json"

    @property
    def log_file(self) -> Path:
        return self.path / "server.log"

    @property
    def kubeconfig(self) -> Path:
        return self.path / "kubeconfig"

    @property
    def merged_file(self) -> Path:
        return self.path / "merged-into"

    def state(self) -> dict[str, Any]:
        return _read_json(self.state_file)

    def write_state(self, state: Mapping[str, Any]) -> None:
        write_private(self.state_file, json.dumps(state).encode())


@dataclass(frozen=True, slots=True)
class Home:
    root: Path

    @property
    def _clusters(self) -> Path:
        return self.root / "clusters"

    @property
    def _quotas(self) -> Path:
        return self.root / "quotas.json"

    def clusters(self) -> list[ClusterDirectory]:
        with _reading(self._clusters, "the directory of clusters"):
            if not self._clusters.is_dir():
                if self.root.exists() and not self.root.is_dir():
                    raise NotADirectoryError(errno.ENOTDIR, "Not a directory", str(self.root))
                return []
            entries = sorted(self._clusters.iterdir())
        return [cluster for entry in entries if (cluster := _cluster_at(entry))]

    def find(self, name: str) -> ClusterDirectory | None:
        return next((cluster for cluster in self.clusters() if cluster.name == name), None)

    def has_place(self, name: str) -> bool:
        """As `find`, but also for a cluster that cannot be looked at now: a directory without
        permission, a link to a disk that is not there."""
        entry = self._clusters / name
        try:
            return entry.is_symlink() or bool((entry / _MARKER).stat())
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True

    def existing(self, name: str) -> ClusterDirectory:
        cluster = self.find(name)
        if cluster is None:
            there = ", ".join(each.name for each in self.clusters()) or "none"
            can_be = re.fullmatch(r"[a-z0-9-]+", name)
            make = f"Make it with: {start_command(name)}" if can_be else ""
            raise CannotUse(
                f'There is no cluster "{name}". Clusters here: {there}. {make}'.rstrip()
            )
        return cluster

    def make(self, name: str, elsewhere: Path | None) -> ClusterDirectory:
        """Makes the directory of a new cluster. Nothing is created when it is refused."""
        link = self._clusters / name
        path = elsewhere.resolve() if elsewhere else link
        with _writing(path, "the data directory", "Choose another with --data-dir."):
            if _is_somebody_elses(path):
                raise CannotUse(
                    f"{path} is not empty, and not of gpupool's making: choose another."
                )
        # Two names for one directory: to delete one cluster would delete the other.
        for other in self.clusters():
            if other.path.is_relative_to(path) or path.is_relative_to(other.path):
                raise CannotUse(
                    f'{path} holds, or lies in, the data of cluster "{other.name}" '
                    f"({other.path}): choose another directory."
                )
        _check_unused(path)
        with self._made():
            self._clusters.mkdir(mode=0o700, exist_ok=True)
            if link.is_symlink():  # to a directory that no longer exists
                link.unlink()
        with _writing(path, "the data directory", "Choose another with --data-dir."):
            make_private(path)
            # Before the link: `clusters` takes an entry for ours only if it has the marker.
            write_private(path / _MARKER, _FORMAT)
            if elsewhere:
                link.symlink_to(path)
        return ClusterDirectory(name, path)

    def delete(self, cluster: ClusterDirectory) -> None:
        """Deletes the directory. `find` returned it, so it has our marker."""
        link = self._clusters / cluster.name
        if link.is_symlink():
            link.unlink()
        # The marker is deleted last, so that a deletion that was interrupted can be repeated.
        for entry in cluster.path.iterdir():
            if entry.name != _MARKER:
                remove_tree(entry)
        shutil.rmtree(cluster.path)  # raises, if something is left

    def quota_changes(self) -> dict[str, int]:
        # Imported here: slow to load, and most commands read no quotas.
        from gpupool.local.config.quotas import parse_change

        found = _read_json(self._quotas)
        for name, number in found.items():
            change = parse_change(f"{name}={number}")
            if isinstance(change, str):
                raise CannotUse(f"{self._quotas} is damaged ({change}): delete it and try again.")
        return found

    def write_quota_changes(self, changes: Mapping[str, int]) -> None:
        with self._made():
            write_private(self._quotas, json.dumps(changes, indent=2).encode() + b"\n")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A lock, held while clusters are counted and created. Without it, two commands at a time
        could both create the last cluster that the quota allows. Raises CannotUse if another
        process keeps it."""
        with ExitStack() as stack:
            with self._made():
                try:
                    stack.enter_context(held(self.root / ".lock"))
                except StillHeld as error:
                    raise CannotUse(str(error)) from error
            yield

    @contextmanager
    def _made(self) -> Iterator[None]:
        """Creates the home if need be. Errors in the block become CannotUse."""
        with _writing(self.root, "gpupool's home", "Choose another with GPUPOOL_HOME."):
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            yield


def start_command(name: str) -> str:
    """What to type to start the cluster of this name."""
    return "gpupool up" if name == DEFAULT_NAME else f"gpupool up --name {name}"


def home() -> Home:
    """$GPUPOOL_HOME, else the directory that the XDG specification gives for state."""
    if given := os.environ.get("GPUPOOL_HOME"):
        try:
            return Home(Path(given).expanduser().absolute())
        except RuntimeError as error:  # ~name, and nobody has that name
            raise CannotUse(
                f'GPUPOOL_HOME is "{given}": wanted a directory, found no home of that user.'
            ) from error
    state = os.environ.get("XDG_STATE_HOME", "")
    try:
        # The XDG specification says that a relative path is to be ignored.
        base = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError as error:  # neither $HOME nor an entry in /etc/passwd
        raise CannotUse("You have no home directory: say where with GPUPOOL_HOME.") from error
    return Home(base / "gpupool")


def _cluster_at(entry: Path) -> ClusterDirectory | None:
    """None if it is not ours, or a link to a directory that we may not read any more."""
    with suppress(PermissionError):
        if (entry / _MARKER).is_file():
            return ClusterDirectory(entry.name, entry.resolve())
    return None


@contextmanager
def _reading(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotUse(
            f"{path} cannot be {what}: wanted one that you may read, found: {_found(error)}. "
            "Choose another with GPUPOOL_HOME."
        ) from error


@contextmanager
def _writing(path: Path, what: str, advice: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotUse(
            f"{path} cannot be {what}: wanted a directory that you may make and write to, "
            f"found: {_found(error)}. {advice}"
        ) from error


def _found(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}"


def make_private(path: Path) -> None:
    """Creates the directory if need be, and makes sure that only its owner can use it."""
    try:
        data_directory.make_data_directory(path)
    except data_directory.DataDirectoryError as error:
        raise CannotUse(f"{error}\nOr choose another directory with --data-dir.") from error


def _is_somebody_elses(path: Path) -> bool:
    if not path.exists() or (path / _MARKER).is_file():
        return False
    return not path.is_dir() or any(path.iterdir())


def _check_unused(path: Path) -> None:
    """A cluster of another GPUPOOL_HOME may live there and run."""
    if (path / _MARKER).is_file():
        try:
            data_directory.Lock(path).close()
        except data_directory.AlreadyRunning as error:
            raise CannotUse(f"{error}\nOr choose another directory with --data-dir.") from error


def check_name(name: str) -> str:
    # Imported here: the file format is slow to load, and most commands check no name.
    from gpupool.local.config.file_format import CLUSTER_NAME, CLUSTER_NAME_WANTED

    if not re.fullmatch(CLUSTER_NAME, name):
        raise CannotUse(f'"{name}" cannot be the name of a cluster: wanted {CLUSTER_NAME_WANTED}.')
    return name


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CannotUse(
            f"{path}: wanted a file of gpupool, found: {error.strerror}. Remove it, and try again."
        ) from error
    except (ValueError, RecursionError) as error:
        raise CannotUse(
            f"{path} is damaged: wanted JSON as gpupool writes it. Delete it and try again."
        ) from error
    return data if isinstance(data, dict) else {}
