"""Finds pods that see cards without an allocation: by annotation, or by environment. Pure."""

from collections.abc import Iterator

from gpupool.contract.device_annotations import device_annotations
from gpupool.contract.gpu_asks import gpu_asks
from gpupool.contract.names import ENV_VISIBLE_DEVICES, GROUP_DEVICES
from gpupool.contract.visible_devices import sees_cards
from gpupool.doctor.alike import Saying, grouped
from gpupool.doctor.evidence import Evidence, Finding, Level
from kubeclient.objects import Obj

_PART_OF = "app.kubernetes.io/part-of"
_ENDED = ("Succeeded", "Failed")
_BY_ANNOTATION = Saying(
    Level.WRONG,
    "pods",
    one="Pod {} names devices that the scheduler has not given to it, and may use cards of others.",
    many="{} pods name devices that the scheduler has not given to them, and may use cards of "
    "others",
    mend="Admission refuses such annotations of new pods. Delete the pod, and create it again with "
    "a request for GPUs.",
)
_BY_ENVIRONMENT = Saying(
    Level.NOTE,
    "pods",
    one=f"Pod {{}} sets {ENV_VISIBLE_DEVICES} and asks for no GPU: where NVIDIA's runtime accepts "
    "that, it sees cards of others.",
    many=f"{{}} pods set {ENV_VISIBLE_DEVICES} and ask for no GPU: where NVIDIA's runtime accepts "
    "that, they see cards of others",
    mend="Right for programs that watch cards. For all others, let NVIDIA's toolkit ignore the "
    "variable: accept-nvidia-visible-devices-envvar-when-unprivileged = false.",
)


def devices_by_annotation(evidence: Evidence) -> Iterator[Finding]:
    yield from grouped(
        (_BY_ANNOTATION, _name(pod))
        for pod in evidence.pods
        if _lives(pod) and _names_devices_of_others(pod)
    )


def cards_by_environment(evidence: Evidence) -> Iterator[Finding]:
    yield from grouped(
        (_BY_ENVIRONMENT, _name(pod))
        for pod in evidence.pods
        if _lives(pod)
        and (pod["metadata"].get("labels") or {}).get(_PART_OF) != "gpupool"
        and not gpu_asks(pod).asks
        and sees_cards(pod)
    )


def _names_devices_of_others(pod: Obj) -> bool:
    annotations = pod["metadata"].get("annotations") or {}
    own = {
        uuid
        for key, value in annotations.items()
        if key.startswith(f"{GROUP_DEVICES}/")
        for uuid in value.split(",")
    }
    return any(
        device.strip().rpartition("=")[2] not in own
        for key in device_annotations(annotations)
        for device in annotations[key].split(",")
    )


def _lives(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") not in _ENDED


def _name(pod: Obj) -> str:
    return f"{pod['metadata'].get('namespace', 'default')}/{pod['metadata']['name']}"
