"""Adds, updates and removes our entries in the user's own kubeconfig.

All other entries stay as they are written. The YAML nodes are moved, not parsed into values and
written again, because that can change a value (0123 may become a number). Comments are lost, as
with kubectl. Our entries carry a mark: an entry that only has the same name is never overwritten or
removed.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from gpupool.local.config.settings import NAMES
from kubeclient.yaml_text import syntax_words
from kubeclient.yaml_writing import dump_yaml
from localkube.data_directory import write_private
from localkube.kubeconfig import (
    Kubeconfig,
    entries,
)

_LISTS = ("clusters", "users", "contexts")
_CURRENT = "current-context"
_EMPTY = b"apiVersion: v1\nkind: Config\n"
_LOCK_WAIT_S = 5.0
_LOCK_PAUSE_S = 0.05


class KubeconfigError(Exception):
    """A kubeconfig that cannot be changed. The message says which file, why, and what to do."""


def default_path(environment: Mapping[str, str]) -> Path:
    """The file that kubectl would write to: the first of $KUBECONFIG, or ~/.kube/config."""
    listed = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    return Path(listed[0]) if listed else Path.home() / ".kube" / "config"


def merge_into(path: Path, kubeconfig: Kubeconfig) -> None:
    """Adds or updates the cluster. It becomes the current context if there is none.

    Before the first change a file with entries is copied to <name>.before-gpupool. Raises
    KubeconfigError.
    """
    name = kubeconfig.entry
    with _changing(path) as config:
        _verify_free(path, config, name)
        for key, entry in entries(kubeconfig).items():
            config.put(key, name, entry)
        if not config.current_context:
            config.current_context = name


def verify(path: Path, cluster: str) -> None:
    """Checks that `merge_into` would work; changes nothing. Raises KubeconfigError."""
    with _changing(path) as config:
        _verify_free(path, config, NAMES.kubeconfig_entry(cluster))


def _verify_free(path: Path, config: "_Config", name: str) -> None:
    for key in _LISTS:
        if config.has(key, name) and not config.is_ours(key, name):
            raise KubeconfigError(
                f"{path} already has {name} under {key}, and it is not gpupool's. Nothing was "
                "changed. Rename that entry, or use another name for the cluster."
            )


def switch_to(path: Path, cluster: str) -> None:
    """Makes a merged cluster the current context. Raises KubeconfigError."""
    name = NAMES.kubeconfig_entry(cluster)
    with _changing(path) as config:
        if not config.is_ours("contexts", name):
            raise KubeconfigError(f"{path} has no context {name} of gpupool. Nothing was changed.")
        config.current_context = name


def remove_from(path: Path, cluster: str) -> None:
    """Removes what `merge_into` has added, if it is there."""
    name = NAMES.kubeconfig_entry(cluster)
    if not os.path.exists(path):
        return
    with _changing(path) as config:
        ours = [key for key in _LISTS if config.is_ours(key, name)]
        for key in ours:
            config.remove(key, name)
        # Otherwise kubectl would complain about a current context that does not exist.
        if "contexts" in ours and config.current_context == name:
            config.current_context = ""


def verify_removal(path: Path) -> None:
    """Checks that `remove_from` would work; changes nothing. Raises KubeconfigError."""
    if os.path.exists(path):
        with _changing(path):
            pass


class _Config:
    """A kubeconfig as the nodes of its YAML."""

    def __init__(self, root: MappingNode) -> None:
        self.root = root

    @property
    def current_context(self) -> str:
        found = _child(self.root, _CURRENT)
        return found.value if isinstance(found, ScalarNode) else ""

    @current_context.setter
    def current_context(self, name: str) -> None:
        _set_child(self.root, _CURRENT, _node(name))

    @property
    def has_entries_of_others_only(self) -> bool:
        listed = [(key, _name(each)) for key in _LISTS for each in _items(_child(self.root, key))]
        return bool(listed) and not any(self.is_ours(key, name or "") for key, name in listed)

    def has(self, key: str, name: str) -> bool:
        return self._entry(key, name) is not None

    def is_ours(self, key: str, name: str) -> bool:
        # Users have no extensions that could hold a mark: the user of a marked cluster is ours.
        marked = "clusters" if key == "users" else key
        entry = self._entry(marked, name)
        inner = _child(entry, marked.removesuffix("s"))
        marks = [_name(each) for each in _items(_child(inner, "extensions"))]
        return self.has(key, name) and NAMES.kubeconfig_extension in marks

    def put(self, key: str, name: str, entry: dict[str, Any]) -> None:
        self.remove(key, name)
        found = _child(self.root, key)
        if not isinstance(found, SequenceNode):
            found = _node([])
            _set_child(self.root, key, found)
        # An empty list is written as `[]`; in that style our entry would stand on the same line.
        found.flow_style = False
        found.value.append(_node(entry))

    def remove(self, key: str, name: str) -> None:
        found = _child(self.root, key)
        if isinstance(found, SequenceNode):
            found.value = [each for each in found.value if _name(each) != name]

    def _entry(self, key: str, name: str) -> Node | None:
        listed = _items(_child(self.root, key))
        return next((each for each in listed if _name(each) == name), None)


def _child(node: Node | None, key: str) -> Node | None:
    if not isinstance(node, MappingNode):
        return None
    return next((value for found, value in node.value if found.value == key), None)


def _set_child(node: MappingNode, key: str, child: Node) -> None:
    node.value = [pair for pair in node.value if pair[0].value != key]
    node.value.append((_node(key), child))


def _items(node: Node | None) -> list[Node]:
    return node.value if isinstance(node, SequenceNode) else []


def _name(entry: Node) -> str | None:
    found = _child(entry, "name")
    return found.value if isinstance(found, ScalarNode) else None


def _node(value: Any) -> Any:
    return yaml.compose(dump_yaml(value), yaml.CSafeLoader)


@contextlib.contextmanager
def _changing(path: Path) -> Iterator[_Config]:
    """Yields the file's content to be changed, then writes it: under a lock, atomically, and with
    a copy of the old file."""
    try:
        with _changing_or_oserror(path) as config:
            yield config
    except OSError as error:
        raise KubeconfigError(
            f"{path} cannot be changed: wanted a file that you may read and write, found: "
            f"{error.strerror} ({error.filename}). Name another with KUBECONFIG."
        ) from error


@contextlib.contextmanager
def _changing_or_oserror(path: Path) -> Iterator[_Config]:
    # A symbolic link (to dotfiles kept elsewhere) stays a link: its target is changed.
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _locked(target):
        old = target.read_bytes() if target.exists() else b""
        config = _parse(path, old)
        # Compared in our own spelling: if nothing changes, the file keeps its format and its
        # comments.
        before = _text(config)
        worth_a_copy = config.has_entries_of_others_only
        yield config
        if _text(config) != before:
            # An exception in the caller's block does not get here, so a refused change writes
            # nothing.
            copy = target.with_name(f"{target.name}.before-gpupool")
            if worth_a_copy and not copy.exists():
                write_private(copy, old)
            write_private(target, _text(config))


def _parse(path: Path, data: bytes) -> _Config:
    try:
        root = yaml.compose(data, yaml.CSafeLoader) or yaml.compose(_EMPTY, yaml.CSafeLoader)
    except yaml.YAMLError as error:
        words, place = syntax_words(error, data.decode("utf-8", "replace"))
        where = f"{path}:{place.line}:{place.column}" if place else str(path)
        raise KubeconfigError(f"{where}: {words}. Nothing was changed.") from error
    if not isinstance(root, MappingNode):
        raise KubeconfigError(f"{path} is not a kubeconfig. Nothing was changed.")
    return _Config(root)


def _text(config: _Config) -> bytes:
    return yaml.serialize(config.root, Dumper=yaml.CSafeDumper, encoding="utf-8")


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """The lock that kubectl uses: a file that exists while somebody writes."""
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
