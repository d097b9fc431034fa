"""A kubeconfig's entries, and the ones that a context names. What is wrong is said in words."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from kubeclient.access import NoAccess
from kubeclient.objects import Obj
from kubeclient.yaml_text import BadYaml, load_yaml

_MAX_BYTES = 4 * 1024**2
_OTHER = "Name another with --kubeconfig or in KUBECONFIG."
_LISTS = {"clusters": "cluster", "contexts": "context", "users": "user"}


class Chosen(NamedTuple):
    """What one context names."""

    cluster: Obj
    user: Obj


def read_kubeconfig(file: Path) -> Obj:
    """Raises NoAccess, unless it has lists of named maps where kubectl has them."""
    try:
        raw = file.read_bytes()
    except OSError as error:
        words = f"The kubeconfig {file} cannot be read: {error.strerror}."
        raise NoAccess(f"{words} {_OTHER}") from error
    if len(raw) > _MAX_BYTES:
        words = f"The kubeconfig {file} has {len(raw)} bytes; at most {_MAX_BYTES} are read."
        raise NoAccess(f"{words} {_OTHER}")
    try:
        found = load_yaml(raw)
    except BadYaml as error:
        raise NoAccess(f"The kubeconfig {file} cannot be used: {_ended(error)} {_OTHER}") from error
    if not isinstance(found, dict):
        wanted = "wanted a map of clusters, contexts and users, as kubectl writes it"
        raise NoAccess(f"{file} is not a kubeconfig: {wanted}; found {described(found)}. {_OTHER}")
    for key, inner in _LISTS.items():
        _check_list(file, key, found.get(key), inner)
    return found


def chosen_context(documents: Sequence[tuple[str, Obj]], context: str) -> Chosen:
    """What the context names, or the current one. Of several files, the first one with an entry
    counts, as for kubectl. Raises NoAccess."""
    files = ":".join(file for file, _ in documents)
    current = (str(document.get("current-context") or "") for _, document in documents)
    name = context or next((each for each in current if each), "")
    contexts = _entries(documents, "contexts")
    listed = _listed(contexts)
    if not name:
        advice = f"Choose one with --context: {listed}." if contexts else _OTHER
        raise NoAccess(f"The kubeconfig {files} has no current-context. {advice}")
    if name not in contexts:
        raise NoAccess(
            f'The kubeconfig {files} has no context "{name}"; it has {listed}. '
            "Choose one with --context."
        )
    found = contexts[name].get("context") or {}
    cluster = _named(documents, "cluster", name, str(found.get("cluster") or ""))
    _check_server(files, str(found.get("cluster")), cluster.get("server"))
    user = str(found.get("user") or "")
    return Chosen(cluster, _named(documents, "user", name, user) if user else {})


def described(value: object) -> str:
    """A value as it is named in "wanted ..., found ..."."""
    match value:
        case None:
            return "nothing"
        case dict():
            return "a map"
        case list():
            return "a list"
        case _:
            text = str(value)
            return f'"{text}"' if len(text) <= 60 else f'"{text[:57]}..."'


def _ended(error: BadYaml) -> str:
    text = str(error)
    return text if text.endswith("?") else f"{text}."


def _check_list(file: Path, key: str, value: object, inner: str) -> None:
    wanted = f"{key}: wanted a list of maps with name and {inner}"
    if value is None:
        return
    if not isinstance(value, list):
        raise NoAccess(f"{file} is not a kubeconfig: {wanted}; found {described(value)}. {_OTHER}")
    for entry in value:
        if not isinstance(entry, dict):
            shown = described(entry)
        elif entry.get("name") is None:
            shown = "one without a name"
        elif not isinstance(entry.get(inner) or {}, dict):
            shown = f"{described(entry[inner])} as {inner}"
        else:
            continue
        raise NoAccess(f"{file} is not a kubeconfig: {wanted}; found {shown}. {_OTHER}")


def _entries(documents: Sequence[tuple[str, Obj]], key: str) -> dict[str, Obj]:
    found: dict[str, Obj] = {}
    for _, document in documents:
        for entry in document.get(key) or ():
            found.setdefault(str(entry["name"]), entry)
    return found


def _named(documents: Sequence[tuple[str, Obj]], kind: str, context: str, name: str) -> Obj:
    files = ":".join(file for file, _ in documents)
    entries = _entries(documents, f"{kind}s")
    if name not in entries:
        raise NoAccess(
            f'Context "{context}" of the kubeconfig {files} wants the {kind} "{name}"; '
            f"there is {_listed(entries)}. Correct it, or choose another with --context."
        )
    found: Obj = entries[name].get(kind) or {}
    return found


def _check_server(files: str, cluster: str, server: object) -> None:
    where = f'cluster "{cluster}" of the kubeconfig {files}'
    wanted = "wanted a server like https://HOST:PORT"
    try:
        parts = urlsplit(server if isinstance(server, str) else "")
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port  # raises if it is none
    except ValueError:
        is_good = False
    if not is_good:
        raise NoAccess(f"In {where}: {wanted}, found {described(server)}.")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
