"""Which (resource, subresource, method) goes where, beyond the ordinary verbs."""

from collections.abc import Awaitable, Callable

from localkube.apiserver.api import Api
from localkube.apiserver.request import Reply, Request
from localkube.apiserver.routing import Target
from localkube.apiserver.subresources.binding import bind
from localkube.apiserver.subresources.eviction import evict
from localkube.apiserver.subresources.metrics import node_metrics, pod_metrics
from localkube.apiserver.subresources.pod_parts import (
    change_ephemeral_containers,
    resize,
)
from localkube.apiserver.subresources.pod_streams import (
    pod_attach,
    pod_exec,
    pod_logs,
    pod_port_forward,
)
from localkube.apiserver.subresources.reviews import review_request, token_request
from localkube.apiserver.subresources.scale import get_scale, write_scale
from localkube.apiserver.verbs.patch import patch
from localkube.apiserver.verbs.read import get
from localkube.apiserver.verbs.update import update

Special = Callable[[Api, Request, Target], Awaitable[Reply]]


# Keyed by group, plural and subresource, then by method.
_SPECIAL: dict[tuple[str, str, str], dict[str, Special]] = {
    ("", "pods", "binding"): {"POST": bind},
    ("", "bindings", ""): {"POST": bind},
    ("", "pods", "eviction"): {"POST": evict},
    ("", "pods", "log"): {"GET": pod_logs},
    ("", "pods", "exec"): {"GET": pod_exec, "POST": pod_exec},
    ("", "pods", "attach"): {"GET": pod_attach, "POST": pod_attach},
    ("", "pods", "portforward"): {"GET": pod_port_forward, "POST": pod_port_forward},
    ("", "pods", "ephemeralcontainers"): {
        "GET": get,
        "PUT": change_ephemeral_containers,
        "PATCH": change_ephemeral_containers,
    },
    ("", "pods", "resize"): {"GET": get, "PUT": resize, "PATCH": resize},
    ("", "namespaces", "finalize"): {"PUT": update},
    ("", "serviceaccounts", "token"): {"POST": token_request},
    ("certificates.k8s.io", "certificatesigningrequests", "approval"): {
        "GET": get,
        "PUT": update,
        "PATCH": patch,
    },
    ("metrics.k8s.io", "nodes", ""): {"GET": node_metrics},
    ("metrics.k8s.io", "pods", ""): {"GET": pod_metrics},
}
_SCALE: dict[str, Special] = {"GET": get_scale, "PUT": write_scale, "PATCH": write_scale}
_REVIEW_GROUPS = ("authentication.k8s.io", "authorization.k8s.io")


def special_handler(target: Target, method: str) -> Special | None:
    kind = target.kind
    if target.subresource == "scale":
        return _SCALE.get(method)
    if kind.group in _REVIEW_GROUPS:
        return review_request if method == "POST" else None
    return _SPECIAL.get((kind.group, kind.plural, target.subresource), {}).get(method)
