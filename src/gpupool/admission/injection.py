"""What admission puts into a GPU pod, so that its allocation reaches its containers by itself.

The scheduler's choice is not known yet. The containers get references to the annotations that will
hold it; the kubelet resolves them when it starts a container, and what it finds there belongs to
this very pod.
"""

from gpupool.admission.asked import PodContainer, gpu_containers, is_shared
from gpupool.admission.complaints import units_per_card
from gpupool.admission.mounts import add_mounts
from gpupool.contract.names import (
    ANNOTATION_MEM_POD,
    ANNOTATION_NO_ISOLATION,
    ENV_CGPU_DISABLE,
    ENV_MEM_CONTAINER,
    ENV_MEM_DEV,
    ENV_MEM_IDX,
    ENV_MEM_POD,
    ENV_VISIBLE_DEVICES,
    GROUP_CARD_UNITS,
    GROUP_DEVICES,
    GROUP_INDEXES,
    GROUP_NO_ISOLATION,
)
from kubeclient.names import DEFAULT_SCHEDULER_NAME
from kubeclient.objects import Obj


def inject(pod: Obj, *, scheduler_name: str) -> None:
    """Changes the pod in place. It has been checked, and has GPU containers."""
    spec = pod["spec"]
    if spec.get("schedulerName", DEFAULT_SCHEDULER_NAME) == DEFAULT_SCHEDULER_NAME:
        spec["schedulerName"] = scheduler_name
    unisolated = [each.spec["name"] for each in gpu_containers(pod) if _takes_off_isolation(each)]
    if unisolated:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[ANNOTATION_NO_ISOLATION] = ",".join(unisolated)
    for number, container in enumerate(gpu_containers(pod)):
        _add_environment(container, pod)
        if is_shared(container):
            add_mounts(container, spec, number)


def _takes_off_isolation(container: PodContainer) -> bool:
    """The user's own CGPU_DISABLE is a wish; whether it is granted, the pool decides."""
    return any(
        variable.get("name") == ENV_CGPU_DISABLE and variable.get("value") == "true"
        for variable in container.spec.get("env") or ()
    )


def _add_environment(container: PodContainer, pod: Obj) -> None:
    name = container.spec["name"]
    ours = [_from_annotation(ENV_VISIBLE_DEVICES, f"{GROUP_DEVICES}/{name}")]
    if is_shared(container):
        ours += [
            _from_annotation(ENV_MEM_IDX, f"{GROUP_INDEXES}/{name}"),
            _from_annotation(ENV_MEM_POD, ANNOTATION_MEM_POD),
            {"name": ENV_MEM_CONTAINER, "value": str(units_per_card(container, pod))},
            _from_annotation(ENV_MEM_DEV, f"{GROUP_CARD_UNITS}/{name}"),
            _from_annotation(ENV_CGPU_DISABLE, f"{GROUP_NO_ISOLATION}/{name}"),
        ]
    names = {variable["name"] for variable in ours}
    kept = [v for v in container.spec.get("env") or () if v.get("name") not in names]
    container.spec["env"] = kept + ours


def _from_annotation(name: str, key: str) -> Obj:
    path = f"metadata.annotations['{key}']"
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
