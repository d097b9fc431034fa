"""Kubeconfigs: our own, and ours within somebody else's.

Names of the cluster, its user and its context are one: gpupool-<cluster>. Ours carry a mark, so
that nothing is ever overwritten or removed that merely has such a name.
"""

import base64
import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gpupool.contract.objects import Obj
from gpupool.localcluster.apiserver.security.data_directory import read_private, write_private

_MARK = "gpupool.io/cluster"
_LISTS = ("clusters", "users", "contexts")
_LOCK_WAIT_S = 5.0
_LOCK_PAUSE_S = 0.05


class KubeconfigError(Exception):
    """A kubeconfig that cannot be changed. The message says which file, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Access:
    """What it takes to reach a cluster as its administrator."""

    cluster: str
    server: str  # "https://127.0.0.1:6443"
    ca_pem: bytes
    token: str

    @property
    def name(self) -> str:
        return entry_name(self.cluster)


def entry_name(cluster: str) -> str:
    return f"gpupool-{cluster}"


def render(access: Access) -> bytes:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": access.name,
        "preferences": {},
    }
    return _dump(config | {key: [entry] for key, entry in _entries(access).items()})


def write(path: Path, access: Access) -> None:
    write_private(path, render(access))


def read_token(path: Path) -> str:
    """The token in a kubeconfig that `write` has written; "" if there is none to be read."""
    data = read_private(path)
    try:
        config = yaml.load(data or b"", yaml.CSafeLoader)
        return str(config["users"][0]["user"]["token"])
    except (yaml.YAMLError, KeyError, IndexError, TypeError):
        return ""


def default_path(environment: dict[str, str]) -> Path:
    """The file that kubectl would write to: the first of $KUBECONFIG, or ~/.kube/config."""
    listed = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    if listed:
        return Path(listed[0])
    return Path(environment.get("HOME") or Path.home()) / ".kube" / "config"


def merge_into(path: Path, access: Access) -> None:
    """Adds the cluster to a kubeconfig, or brings it up to date. All else stays.

    It becomes the current context only if there is none. Before the first change the file is
    copied to <name>.before-gpupool. Raises KubeconfigError.
    """
    with _changing(path) as config:
        for key, entry in _entries(access).items():
            _refuse_foreign(path, config, key, access.name)
            others = [each for each in _listed(config, key) if each.get("name") != access.name]
            config[key] = [*others, entry]
        if not config.get("current-context"):
            config["current-context"] = access.name


def switch_to(path: Path, cluster: str) -> None:
    """Makes a merged cluster the current context."""
    with _changing(path) as config:
        config["current-context"] = entry_name(cluster)


def remove_from(path: Path, cluster: str) -> None:
    """Takes out what `merge_into` has put in; does nothing where that is not."""
    name = entry_name(cluster)
    if not path.exists() or not _is_ours(_load(path), "clusters", name):
        return
    with _changing(path) as config:
        for key in _LISTS:
            if _is_ours(config, key, name):
                config[key] = [each for each in _listed(config, key) if each.get("name") != name]
        if config.get("current-context") == name:
            config["current-context"] = ""


def _entries(access: Access) -> dict[str, Obj]:
    mark = {"extensions": [{"name": _MARK, "extension": {"cluster": access.cluster}}]}
    ca = base64.b64encode(access.ca_pem).decode()
    name = access.name
    return {
        "clusters": {
            "name": name,
            "cluster": {"server": access.server, "certificate-authority-data": ca, **mark},
        },
        "users": {"name": name, "user": {"token": access.token}},
        "contexts": {"name": name, "context": {"cluster": name, "user": name, **mark}},
    }


@contextlib.contextmanager
def _changing(path: Path) -> Iterator[Obj]:
    """The file's content, to be changed and then written: locked, atomic, with a copy before."""
    # A link (dotfiles kept elsewhere) stays one: what it points to is changed.
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _locked(target):
        config = _load(target)
        before = _dump(config)
        yield config
        if _dump(config) != before:
            _back_up(target)
            write_private(target, _dump(config))


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """kubectl's own lock: a file that exists."""
    lock = path.with_name(f"{path.name}.lock")
    until = time.monotonic() + _LOCK_WAIT_S
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0o600))
            break
        except FileExistsError:
            if time.monotonic() > until:
                raise KubeconfigError(
                    f"{path} is locked: {lock} exists. If no kubectl is running, remove it."
                ) from None
            time.sleep(_LOCK_PAUSE_S)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _back_up(path: Path) -> None:
    copy = path.with_name(f"{path.name}.before-gpupool")
    if path.exists() and not copy.exists():
        write_private(copy, path.read_bytes())


def _load(path: Path) -> Obj:
    try:
        config = yaml.load(path.read_bytes(), yaml.CSafeLoader)
    except FileNotFoundError:
        config = None
    except yaml.YAMLError as error:
        raise KubeconfigError(f"{path} is not YAML: {error}. Nothing was changed.") from error
    if config is None:
        config = {"apiVersion": "v1", "kind": "Config"}
    lists = [config.get(key) for key in _LISTS] if isinstance(config, dict) else ["x"]
    if not all(_is_list_of_entries(each) for each in lists):
        raise KubeconfigError(f"{path} is not a kubeconfig. Nothing was changed.")
    return dict(config)


def _is_list_of_entries(found: Any) -> bool:
    if found is None:
        return True
    return isinstance(found, list) and all(isinstance(each, dict) for each in found)


def _listed(config: Obj, key: str) -> list[Obj]:
    return config.get(key) or []


def _is_ours(config: Obj, key: str, name: str) -> bool:
    """Whether an entry of this name is there and was made by us. Users cannot carry a mark: that
    of a cluster of ours is ours."""
    if key == "users":
        key = "clusters"
    found = next((each for each in _listed(config, key) if each.get("name") == name), {})
    inner = found.get(key.removesuffix("s")) or {}
    return any(each.get("name") == _MARK for each in inner.get("extensions") or ())


def _refuse_foreign(path: Path, config: Obj, key: str, name: str) -> None:
    is_there = any(each.get("name") == name for each in _listed(config, key))
    if is_there and not _is_ours(config, key, name):
        raise KubeconfigError(
            f"{path} already has an entry {name} under {key} that is not of gpupool. Nothing was "
            f"changed. Rename that entry, or use another cluster name."
        )


def _dump(config: Obj) -> bytes:
    return yaml.dump(config, Dumper=yaml.CSafeDumper, sort_keys=False, encoding="utf-8")
