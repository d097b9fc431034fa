"""What a request to another API server wants to do: its resources are not known here, so that the
path alone tells. This server asks its own roles before it forwards anything."""

from localkube.apiserver import status
from localkube.apiserver.aggregation.registry import Remote
from localkube.apiserver.request import Request
from localkube.apiserver.routing import segment
from localkube.apiserver.security.access import Access

_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_OF_COLLECTIONS = {"get": "list", "delete": "deletecollection"}


def access_of(request: Request, remote: Remote) -> Access:
    """Raises ApiError for a path that leads elsewhere than it says, and for other methods."""
    verb = _VERBS.get(request.method)
    if verb is None:
        raise status.method_not_allowed()
    rest = request.path[len(remote.path) :].strip("/")
    parts = [segment(part) for part in rest.split("/")] if rest else []
    if not parts:
        return Access(verb=verb, path=remote.path)
    if "" in parts:
        raise status.no_such_resource()
    watched = parts[0] == "watch" and len(parts) > 1
    if watched:
        parts = parts[1:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    resource, name, subresource = (*parts, "", "")[:3]
    if watched or (verb == "get" and not name and request.flag("watch")):
        verb = "watch"
    elif not name:
        verb = _OF_COLLECTIONS.get(verb, verb)
    return Access(verb, remote.group, resource, subresource, namespace, name)
