"""What a manifest says in the words of the form of a new workload. Pure.

`workload_manifest.py` is the way there; this is the way back. What the form has no field for is
left out, and `three_way.py` keeps it.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpupool.console.parts.lines import lines_of
from gpupool.console.parts.port_lines import port_lines
from gpupool.console.workload_manifest import KINDS, NONE, SHARE, WHOLE
from gpupool.contract.names import LABEL_POOL, RESOURCE_GPU, RESOURCE_GPU_MEM
from kubeclient.objects import Obj


@dataclass(frozen=True, slots=True)
class Manifest:
    """The objects of a manifest: those that the form makes, and others."""

    workload: Obj
    service: Obj | None = None
    others: tuple[Obj, ...] = ()

    @property
    def objects(self) -> list[Obj]:
        return [self.workload, *([self.service] if self.service else ()), *self.others]

    @property
    def parts(self) -> Obj:
        """For `three_way.joined`. What is not there has no key."""
        service = {"service": self.service} if self.service else {}
        return {"workload": self.workload, **service}


def manifest_of(objects: list[Obj]) -> Manifest | None:
    """None: it has no workload that the form could make."""
    # As text: while somebody types, it may be a list.
    workload = next((each for each in objects if str(each.get("kind")) in KINDS), None)
    if workload is None:
        return None
    service = next((each for each in objects if each.get("kind") == "Service"), None)
    others = tuple(each for each in objects if each is not workload and each is not service)
    return Manifest(workload, service, others)


def values_of(manifest: Manifest) -> dict[str, str]:
    """The fields of the form."""
    workload = manifest.workload
    metadata, spec = _map(workload, "metadata"), _map(workload, "spec")
    pod = _map(_map(spec, "template"), "spec")
    container = _first(pod.get("containers"))
    count = spec.get("completions" if workload["kind"] == "Job" else "replicas", 1)
    return {
        "name": _text(metadata.get("name")),
        "kind": workload["kind"],
        "namespace": _text(metadata.get("namespace")),
        "image": _text(container.get("image")),
        "command": _command(container.get("command")),
        "replicas": _text(count),
        "pool": _text(_map(pod, "nodeSelector").get(LABEL_POOL)),
        "ports": _ports(manifest.service, container),
        "env": _env(container.get("env")),
        "service": _text(_map(manifest.service or {}, "spec").get("type") or "ClusterIP")
        if manifest.service
        else "",
        **_cards(_map(_map(container, "resources"), "limits")),
    }


def _cards(limits: Mapping[str, Any]) -> dict[str, str]:
    if RESOURCE_GPU_MEM in limits:
        return {"gpu": SHARE, "units": _text(limits[RESOURCE_GPU_MEM])}
    if RESOURCE_GPU in limits:
        return {"gpu": WHOLE, "cards": _text(limits[RESOURCE_GPU])}
    return {"gpu": NONE}


def _command(words: object) -> str:
    """Empty for one that does not fit into a line."""
    if not isinstance(words, list) or not all(isinstance(each, str) for each in words):
        return ""
    line = shlex.join(words)
    return "" if "\n" in line or "\r" in line else line


def _env(entries: object) -> str:
    """Those with a plain value of one line."""
    plain = {
        each["name"]: each["value"]
        for each in _maps(entries)
        if isinstance(each.get("name"), str) and isinstance(each.get("value"), str)
    }
    return lines_of(
        {
            name: value
            for name, value in plain.items()
            if name.strip() == name
            and value.strip() == value
            and "=" not in name
            and not any(mark in name + value for mark in "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
        }
    )


def _ports(service: Obj | None, container: Obj) -> str:
    if service is not None:
        return port_lines(_maps(_map(service, "spec").get("ports")))
    opened = _maps(container.get("ports"))
    return port_lines(
        [{"port": each.get("containerPort"), "protocol": each.get("protocol")} for each in opened]
    )


def _map(value: Mapping[str, Any], key: str) -> Obj:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _maps(value: object) -> list[Obj]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _first(value: object) -> Obj:
    return next(iter(_maps(value)), {})


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""
