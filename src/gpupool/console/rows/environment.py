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
_FIELDS = (
    *("metadata.name", "metadata.namespace", "metadata.uid"),
    *("spec.nodeName", "spec.serviceAccountName", "status.podIP", "status.hostIP"),
)
_OF_THE_POD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


@dataclass(frozen=True, slots=True)
class Environment:
    container: str
    variables: tuple[str, ...]  # NAME=value, or NAME → where its value comes from
    more: int = 0  # that are left out


def environments(pod: Obj) -> tuple[Environment, ...]:
    """Of the containers that have one."""
    found = ((each["name"], list(_variables(pod, each))) for each in all_containers(pod))
    return tuple(
        Environment(name, tuple(pairs[:_MOST]), max(0, len(pairs) - _MOST))
        for name, pairs in found
        if pairs
    )


def _variables(pod: Obj, container: Obj) -> Iterator[str]:
    for source in container.get("envFrom") or ():
        for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if key in source:
                yield f"{source.get('prefix') or ''}* → {kind} {source[key].get('name')}"
    for each in container.get("env") or ():
        source = each.get("valueFrom") or {}
        value = _of_the_pod(pod, source) if source else str(each.get("value") or "")
        if value is None:
            yield f"{each['name']} → {_reference(source)}"
        else:
            yield f"{each['name']}={value[:_LONGEST]}{'…' if len(value) > _LONGEST else ''}"


def _reference(source: Obj) -> str:
    for key, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if key in source:
            return f"{kind} {source[key].get('name')}: {source[key].get('key')}"
    if "fileKeyRef" in source:
        file = source["fileKeyRef"]
        return f"{file.get('volumeName')}/{file.get('path')}: {file.get('key')}"
    if "resourceFieldRef" in source:
        return str(source["resourceFieldRef"].get("resource"))
    return str((source.get("fieldRef") or {}).get("fieldPath"))


def _of_the_pod(pod: Obj, source: Obj) -> str | None:
    """The value of what refers to the pod itself. None: it refers to something else, or to what
    is not known yet."""
    path = str((source.get("fieldRef") or {}).get("fieldPath") or "")
    metadata = pod["metadata"]
    if found := _OF_THE_POD.fullmatch(path):
        return str((metadata.get(found[1]) or {}).get(found[2], ""))
    part, _, key = path.partition(".")
    known = (pod.get(part) or {}).get(key) if path in _FIELDS else None
    return str(known) if known else None
