"""What objects of the API and files of a node tell about the ways of cards. Pure but for files."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from gpupool.core.ways import Way
from gpupool.hardware.cdi import Specs
from kubeclient.objects import Obj

# Handlers that NVIDIA's toolkit configures, the best first.
HANDLERS = ("nvidia", "nvidia-cdi", "nvidia-legacy")
# In the container of the agent, one of them is there only if something has put it in.
_CONTROL_DEVICES = (Path("/dev/nvidiactl"), Path("/dev/dxg"))  # the second: in WSL
# The DaemonSet of the GPU Operator in which NVIDIA's NRI plugin runs.
_TOOLKIT_LABEL = ("app", "nvidia-container-toolkit-daemonset")
_TOOLKIT_SWITCH = {"name": "ENABLE_NRI_PLUGIN", "value": "true"}
_NRI_DIRECTORIES = ("/var/run/nri", "/run/nri")


@dataclass(frozen=True, slots=True)
class OwnDriver:
    """How the container of this agent asked for the driver. If it has it, that way works here for
    pods, too: the agent has no privilege that they have not."""

    way: Way
    runtime_class: str = ""

    def arrived(self) -> bool:
        return any(device.exists() for device in _CONTROL_DEVICES)


def control_devices() -> tuple[str, ...]:
    """One of these is in every container with a card: what the agent's own container has, or else
    all that there may be."""
    here = tuple(str(device) for device in _CONTROL_DEVICES if device.exists())
    return here or tuple(map(str, _CONTROL_DEVICES))


class RuntimeClasses(NamedTuple):
    """The runtime class of NVIDIA for a node. That it works is known if the kubelet says so."""

    name: str = ""  # the best one; empty: there is none
    works: bool = False


def runtime_classes(classes: Iterable[Obj], node: Obj) -> RuntimeClasses:
    """The kubelet lists the handlers of its runtime in the node's status, where the runtime tells
    them (containerd from 2.0 on, CRI-O from 1.30 on)."""
    labels = node["metadata"].get("labels") or {}
    ours = sorted(
        (HANDLERS.index(each["handler"]), each["metadata"]["name"])
        for each in classes
        if each.get("handler") in HANDLERS and _is_for(each, labels)
    )
    listed = {
        str(handler.get("name", ""))
        for handler in (node.get("status") or {}).get("runtimeHandlers") or ()
    }
    for rank, name in ours:
        if HANDLERS[rank] in listed:
            return RuntimeClasses(name, True)
    return RuntimeClasses(ours[0][1] if ours else "")


def _is_for(runtime_class: Obj, labels: Obj) -> bool:
    selector = (runtime_class.get("scheduling") or {}).get("nodeSelector") or {}
    return all(labels.get(key) == value for key, value in selector.items())


def nvidia_plugin(pods: Iterable[Obj]) -> str | None:
    """Why NVIDIA's NRI plugin does not work on the node of these pods; empty: it does; None: it is
    not there."""
    found = [pod for pod in pods if _runs_nvidia_plugin(pod)]
    if not found:
        return None
    if any(_is_ready(pod) for pod in found):
        return ""
    name = f"{found[0]['metadata'].get('namespace', '')}/{found[0]['metadata']['name']}"
    return f"pod {name}, which runs NVIDIA's NRI plugin, is not ready"


def _runs_nvidia_plugin(pod: Obj) -> bool:
    """The mount of the NRI socket counts, too: whoever may have it is root on the node already, so
    nobody else can make us believe in a plugin that is not there."""
    key, value = _TOOLKIT_LABEL
    spec = pod["spec"]
    return (
        (pod["metadata"].get("labels") or {}).get(key) == value
        and any(
            _TOOLKIT_SWITCH.items() <= variable.items()
            for container in spec.get("containers") or ()
            for variable in container.get("env") or ()
        )
        and any(
            (volume.get("hostPath") or {}).get("path", "").rstrip("/") in _NRI_DIRECTORIES
            for volume in spec.get("volumes") or ()
        )
    )


def _is_ready(pod: Obj) -> bool:
    conditions: Sequence[Any] = (pod.get("status") or {}).get("conditions") or ()
    return "deletionTimestamp" not in pod["metadata"] and any(
        (each.get("type"), each.get("status")) == ("Ready", "True") for each in conditions
    )


def cdi_kind(specs: Specs, uuids: Iterable[str]) -> tuple[str, str]:
    """The kind under which CDI files name all these cards, or why there is none."""
    kinds = {uuid: specs.kind(uuid) for uuid in uuids}
    if missing := [uuid for uuid, kind in kinds.items() if not kind]:
        places = ", ".join(map(str, specs.directories))
        return "", (
            f"no CDI file in {places} names card {missing[0]}: NVIDIA's plugin could not find it. "
            "`nvidia-ctk cdi generate`, or NVIDIA's device plugin, writes one"
        )
    if len(set(kinds.values())) > 1:
        return "", f"CDI files name the cards by different kinds: {', '.join(set(kinds.values()))}"
    return next(iter(kinds.values()), ""), ""
