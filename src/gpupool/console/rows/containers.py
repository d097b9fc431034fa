"""The containers of a pod, by name."""

from kubeclient.objects import Obj


def container_names(pod: Obj) -> tuple[str, ...]:
    """Those that run first come first; those that prepare and help come after them."""
    spec = pod["spec"]
    kinds = ("containers", "initContainers", "ephemeralContainers")
    return tuple(str(each["name"]) for kind in kinds for each in spec.get(kind) or ())


def chosen_container(names: tuple[str, ...], wanted: str) -> str:
    return wanted if wanted in names else names[0]
