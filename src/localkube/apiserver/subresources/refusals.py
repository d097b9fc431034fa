"""A node's "no" as the client gets it."""

from localkube.apiserver.status import ApiError, failure, internal
from localkube.node_streams import NodeRefusal

_REASONS = {400: "BadRequest", 403: "Forbidden", 404: "NotFound", 409: "Conflict"}


def refused(refusal: NodeRefusal) -> ApiError:
    if refusal.code == 500:
        return internal(refusal.message)
    return failure(refusal.code, _REASONS.get(refusal.code, ""), refusal.message)
