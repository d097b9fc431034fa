"""The containers of a pod."""

from kubeclient.objects import Obj


def all_containers(pod: Obj) -> tuple[Obj, ...]:
    """Those that run first come first; those that prepare and help come after them."""
    kinds = ("containers", "initContainers", "ephemeralContainers")
    return tuple(each for kind in kinds for each in pod["spec"].get(kind) or ())


def container_names(pod: Obj) -> tuple[str, ...]:
    return tuple(str(each["name"]) for each in all_containers(pod))


def chosen_container(names: tuple[str, ...], wanted: str) -> str:
    return wanted if wanted in names else names[0]
