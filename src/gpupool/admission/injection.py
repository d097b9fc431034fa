"""What admission puts into a GPU pod, so that its allocation reaches its containers.

At this time the scheduler has not chosen yet. The containers get environment variables that refer
to annotations (downward API), which the scheduler will write together with the Binding. The kubelet
resolves the references when it starts a container. It reads them from the pod that it starts, so a
container can never get another pod's cards. If an annotation is missing, the variable is empty and
the container sees no card.
"""

from gpupool.admission.asked import PodContainer, containers, gpu_containers, is_shared
from gpupool.admission.complaints import units_per_card
from gpupool.admission.environment import chosen_by_the_scheduler, for_the_hook
from gpupool.admission.mounts import add_mounts
from gpupool.contract.names import (
    ANNOTATION_NO_ISOLATION,
    ENV_CGPU_DISABLE,
    ENV_MEM_CONTAINER,
    ENV_VISIBLE_DEVICES,
    LABEL_ISOLATION,
    VISIBLE_DEVICES_NONE,
)
from gpupool.core.gpu import Wall
from kubeclient.names import DEFAULT_SCHEDULER_NAME
from kubeclient.objects import Obj


def inject(pod: Obj, *, scheduler_name: str, by_driver: bool = False) -> None:
    """Changes the pod in place. It must have no complaints, and at least one GPU container.
    `by_driver`: wherever it can run, the driver itself holds isolated shares."""
    spec = pod["spec"]
    if spec.get("schedulerName", DEFAULT_SCHEDULER_NAME) == DEFAULT_SCHEDULER_NAME:
        spec["schedulerName"] = scheduler_name
    # Read before `_add_environment` replaces the user's CGPU_DISABLE.
    unisolated = [each.spec["name"] for each in gpu_containers(pod) if _asks_for_no_isolation(each)]
    if unisolated:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[ANNOTATION_NO_ISOLATION] = ",".join(unisolated)
    for number, container in enumerate(gpu_containers(pod)):
        _add_environment(container, pod)
        if is_shared(container):
            add_mounts(container, spec, number)
            if by_driver and container.spec["name"] not in unisolated:
                _add_for_the_hook(container, spec)
    _hide_from_the_others(pod)


def _hide_from_the_others(pod: Obj) -> None:
    """The pod's runtime class counts for all of its containers: where NVIDIA's runtime is the way,
    a container without a request would see every card if its image sets the variable, as CUDA
    images do. What the spec sets has been checked (`unrequested_complaints`)."""
    asking = [each.field for each in gpu_containers(pod)]
    for container in containers(pod):
        variables = container.spec.get("env") or []
        if container.field in asking or any(
            each.get("name") == ENV_VISIBLE_DEVICES for each in variables
        ):
            continue
        hidden = {"name": ENV_VISIBLE_DEVICES, "value": VISIBLE_DEVICES_NONE}
        container.spec["env"] = [*variables, hidden]


def _asks_for_no_isolation(container: PodContainer) -> bool:
    """A user's CGPU_DISABLE=true is a request; whether it is granted depends on the node pool."""
    return any(
        variable.get("name") == ENV_CGPU_DISABLE and variable.get("value") == "true"
        for variable in container.spec.get("env") or ()
    )


def _add_for_the_hook(container: PodContainer, spec: Obj) -> None:
    """With these variables, the container starts only where the scheduler gives them values. So the
    pod stays on nodes like those that it was admitted for."""
    ours = for_the_hook(container)
    kept = [v for v in container.spec["env"] if v.get("name") not in ours]
    container.spec["env"] = kept + list(ours.values())
    affinity = spec.setdefault("affinity", {}) or {}
    nodes = affinity.setdefault("nodeAffinity", {})
    required = nodes.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    wanted = {"key": LABEL_ISOLATION, "operator": "In", "values": [str(Wall.DRIVER)]}
    # A pod needs one of the terms, so each of them gets the rule.
    for term in required.setdefault("nodeSelectorTerms", [{}]):
        rules = term.setdefault("matchExpressions", [])
        if wanted not in rules:
            rules.append(wanted)
    spec["affinity"] = affinity


def _add_environment(container: PodContainer, pod: Obj) -> None:
    ours = list(chosen_by_the_scheduler(container).values())
    if is_shared(container):
        # A plain value: it follows from the spec, not from what the scheduler chooses.
        ours.append({"name": ENV_MEM_CONTAINER, "value": str(units_per_card(container, pod))})
    names = {variable["name"] for variable in ours}
    # Dropped are CGPU_DISABLE, and what admission added when the pod passed it before: `complaints`
    # has refused all other variables with names of ours.
    kept = [v for v in container.spec.get("env") or () if v.get("name") not in names]
    container.spec["env"] = kept + ours
