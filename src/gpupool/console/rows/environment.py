"""The environment of a pod's containers, as its object has it.

What refers to the pod itself is shown with its value. What refers to a ConfigMap or a Secret is
shown as the reference: whoever may see the pod may not see those.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gpupool.console.rows.containers import all_containers
from kubeclient.objects import Obj

_MOST = 200  # variables of a container; its YAML has them all
_LONGEST = 200
_OF_THE_POD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


@dataclass(frozen=True, slots=True)
class Environment:
    container: str
    variables: tuple[tuple[str, str], ...]  # name, and value or reference
    more: int = 0  # that are left out


def environments(pod: Obj) -> tuple[Environment, ...]:
    """Of the containers that have one."""
    found = ((each["name"], list(_variables(pod, each))) for each in all_containers(pod))
    return tuple(
        Environment(name, tuple(pairs[:_MOST]), max(0, len(pairs) - _MOST))
        for name, pairs in found
        if pairs
    )


def _variables(pod: Obj, container: Obj) -> Iterator[tuple[str, str]]:
    for source in container.get("envFrom") or ():
        for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if key in source:
                yield f"{source.get('prefix') or ''}*", f"→ {kind} {source[key].get('name')}"
    for each in container.get("env") or ():
        value = _value(pod, each)
        yield each["name"], value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…"


def _value(pod: Obj, variable: Obj) -> str:
    source = variable.get("valueFrom") or {}
    for key, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if key in source:
            return f"→ {kind} {source[key].get('name')}: {source[key].get('key')}"
    if "fileKeyRef" in source:
        file = source["fileKeyRef"]
        return f"→ {file.get('volumeName')}/{file.get('path')}: {file.get('key')}"
    if "resourceFieldRef" in source:
        return f"→ {source['resourceFieldRef'].get('resource')}"
    if "fieldRef" in source:
        return _of_the_pod(pod, str(source["fieldRef"].get("fieldPath") or ""))
    return str(variable.get("value") or "")


def _of_the_pod(pod: Obj, path: str) -> str:
    metadata = pod["metadata"]
    if found := _OF_THE_POD.fullmatch(path):
        return str((metadata.get(found[1]) or {}).get(found[2], ""))
    known = {f"metadata.{key}": metadata.get(key) for key in ("name", "namespace", "uid")}
    return str(known.get(path) or f"→ {path}")
