"""The contexts of kubeconfigs: their names, and the namespace that kubectl would use.

Only what is needed before a cluster is asked. What is wrong with a file is said by `credentials.py`
once the file is used; here it has no contexts.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kubeclient.credentials import IN_CLUSTER, is_pod

DEFAULT_NAMESPACE = "default"


class Contexts(NamedTuple):
    namespaces: dict[str, str]  # by the name of the context; empty: it names none
    current: str = ""
    server: str = ""  # of the current context


def contexts_of(environ: Mapping[str, str], kubeconfig: str = "") -> Contexts:
    """Those of the given kubeconfig, else of the user's. Of several files the first one that has a
    name wins, as in kubectl."""
    files = kubeconfig or environ.get("KUBECONFIG") or f"{environ.get('HOME', '')}/.kube/config"
    contexts: dict[str, dict[str, Any]] = {}
    clusters: dict[str, dict[str, Any]] = {}
    current = ""
    for config in map(_read, filter(None, files.split(os.pathsep))):
        current = current or _text(config.get("current-context"))
        for kind, found in (("context", contexts), ("cluster", clusters)):
            for entry in filter(_is_map, _list(config.get(f"{kind}s"))):
                found.setdefault(_text(entry.get("name")), _map(entry.get(kind)))
    contexts.pop("", None)
    namespaces = {name: _text(context.get("namespace")) for name, context in contexts.items()}
    cluster = _text(contexts.get(current, {}).get("cluster"))
    return Contexts(namespaces, current, _text(clusters.get(cluster, {}).get("server")))


def namespace_of(
    environ: Mapping[str, str],
    *,
    kubeconfig: str = "",
    context: str = "",
    in_cluster: Path = IN_CLUSTER,
) -> str:
    """The namespace that kubectl would use: of the context, or of the pod that this is."""
    if not kubeconfig and not environ.get("KUBECONFIG") and is_pod(environ, in_cluster):
        try:
            found = (in_cluster / "namespace").read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            found = ""
    else:
        contexts = contexts_of(environ, kubeconfig)
        found = contexts.namespaces.get(context or contexts.current, "")
    return found or DEFAULT_NAMESPACE


def _read(file: str) -> dict[str, Any]:
    try:
        found = yaml.load(Path(file).read_bytes(), yaml.CSafeLoader)
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        return {}
    return _map(found)


def _is_map(found: Any) -> bool:
    return isinstance(found, dict)


def _map(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _text(found: Any) -> str:
    return found if isinstance(found, str) else ""
