"""NVIDIA_VISIBLE_DEVICES in the spec of a pod: with NVIDIA's runtime it gives cards to a container.

Only what the spec says is seen here; an image may set the variable, too.
"""

from gpupool.contract.names import ENV_VISIBLE_DEVICES, VISIBLE_DEVICES_NONE
from kubeclient.objects import Obj

# "none" gives the driver's files and no card.
NO_CARD = ("", VISIBLE_DEVICES_NONE, "none")


def sees_cards(pod: Obj) -> bool:
    """Whether a container sets the variable to anything that may be a card."""
    return any(
        is_for_cards(variable)
        for key in ("initContainers", "containers", "ephemeralContainers")
        for container in pod["spec"].get(key) or ()
        for variable in container.get("env") or ()
    )


def is_for_cards(variable: Obj) -> bool:
    """Whether a variable of a container may make cards visible."""
    if variable.get("name") != ENV_VISIBLE_DEVICES:
        return False
    return "valueFrom" in variable or (variable.get("value") or "") not in NO_CARD
