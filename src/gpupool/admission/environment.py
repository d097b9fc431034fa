"""The variables that admission adds to GPU containers, and nobody else may."""

from collections.abc import Iterator

from gpupool.admission.asked import (
    PodContainer,
    all_containers,
    gpu_containers,
    is_shared,
    whole_number,
)
from gpupool.contract.names import (
    ANNOTATION_MEM_POD,
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
    VISIBLE_DEVICES_NONE,
)
from gpupool.contract.visible_devices import is_for_cards
from kubeclient.objects import Obj

# CGPU_DISABLE is not among them: with it, a user asks for no isolation (`injection.py`).
_OURS = frozenset({ENV_VISIBLE_DEVICES, ENV_MEM_IDX, ENV_MEM_POD, ENV_MEM_CONTAINER, ENV_MEM_DEV})


def environment_complaints(container: PodContainer) -> Iterator[str]:
    for i, variable in enumerate(container.spec.get("env") or ()):
        if variable.get("name") in _OURS and not _is_from_admission(variable, container):
            yield (
                f"{container.field}.env[{i}].name: wanted a name that gpupool does not set itself, "
                f"found {variable['name']}"
            )


def unrequested_complaints(pod: Obj) -> Iterator[str]:
    """About containers of a GPU pod that ask for no card themselves and want to see some."""
    asking = [each.field for each in gpu_containers(pod)]
    for container in all_containers(pod):
        for i, variable in enumerate(container.spec.get("env") or ()):
            if container.field not in asking and is_for_cards(variable):
                yield (
                    f"{container.field}.env[{i}].name: wanted a request for GPUs in this container "
                    f"beside {variable['name']}, found none"
                )


def hide_unrequested(pod: Obj) -> bool:
    """Makes a pod without a request see no card, as far as its spec says; whether it changed."""
    changed = False
    for container in all_containers(pod):
        for variable in container.spec.get("env") or ():
            if is_for_cards(variable):
                variable.pop("valueFrom", None)
                variable["value"] = VISIBLE_DEVICES_NONE
                changed = True
    return changed


def _is_from_admission(variable: Obj, container: PodContainer) -> bool:
    """Whether admission added the variable: a pod may pass admission more than once."""
    if variable["name"] == ENV_MEM_CONTAINER:  # replaced, because the share may have changed
        return is_shared(container) and whole_number(variable.get("value")) is not None
    return variable == chosen_by_the_scheduler(container).get(variable["name"])


def chosen_by_the_scheduler(container: PodContainer) -> dict[str, Obj]:
    """By name: the variables that get their value from annotations of the Binding."""
    name = container.spec["name"]
    keys = {ENV_VISIBLE_DEVICES: f"{GROUP_DEVICES}/{name}"}
    if is_shared(container):
        keys |= {
            ENV_MEM_IDX: f"{GROUP_INDEXES}/{name}",
            ENV_MEM_POD: ANNOTATION_MEM_POD,
            ENV_MEM_DEV: f"{GROUP_CARD_UNITS}/{name}",
            ENV_CGPU_DISABLE: f"{GROUP_NO_ISOLATION}/{name}",
        }
    return {variable: _from_annotation(variable, key) for variable, key in keys.items()}


def _from_annotation(name: str, key: str) -> Obj:
    path = f"metadata.annotations['{key}']"
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
