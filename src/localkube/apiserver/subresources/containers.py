"""Which container of a pod a request is about, and what its status says of it."""

from collections.abc import Iterator

from kubeclient.objects import Obj
from localkube.apiserver.status import ApiError, bad_request, failure, internal
from localkube.node_streams import NodeRefusal

_LISTS = ("initContainers", "containers", "ephemeralContainers")
_STATUS_LISTS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


def chosen_container(pod: Obj, wanted: str) -> str:
    """The one that is asked for, or the only one. Raises ApiError."""
    name, names = pod["metadata"]["name"], list(_names(pod))
    if wanted:
        if wanted not in names:
            raise bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    regular = pod["spec"]["containers"]
    if len(regular) == 1:
        return str(regular[0]["name"])
    raise bad_request(
        f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]"
    )


def container_status(pod: Obj, container: str) -> Obj | None:
    status: Obj = pod.get("status") or {}
    for key in _STATUS_LISTS:
        for found in status.get(key) or ():
            if found.get("name") == container:
                return dict(found)
    return None


def _names(pod: Obj) -> Iterator[str]:
    for key in _LISTS:
        for container in pod["spec"].get(key) or ():
            yield container["name"]


_REASONS = {400: "BadRequest", 403: "Forbidden", 404: "NotFound", 409: "Conflict"}


def refused(refusal: NodeRefusal) -> ApiError:
    """A refusal of the node's kubelet, as the client gets it."""
    if refusal.code == 500:
        return internal(refusal.message)
    return failure(refusal.code, _REASONS.get(refusal.code, ""), refusal.message)
