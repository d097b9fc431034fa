"""What a device plugin must say to be registered, else the kubelet's words. Pure."""

import re

from kubeclient.kubeletapi.messages import API_VERSION, RegisterRequest

_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_RESOURCE = re.compile(
    rf"(?=.{{1,244}}/){_LABEL}(\.{_LABEL})*/([A-Za-z0-9][-A-Za-z0-9_.]{{0,61}})?[A-Za-z0-9]"
)
_ENDPOINT = re.compile(r"[A-Za-z0-9_][-A-Za-z0-9_.]{0,254}")


def problem_of(request: RegisterRequest) -> str | None:
    if request.version != API_VERSION:
        return (
            f'requested API version "{request.version}" is not supported by kubelet. '
            f'Supported version is ["{API_VERSION}"]'
        )
    if not is_extended(request.resource_name):
        return f'the ResourceName "{request.resource_name}" is invalid'
    if not _ENDPOINT.fullmatch(request.endpoint):
        return f'the Endpoint "{request.endpoint}" is not the name of a file beside kubelet.sock'
    return None


def is_extended(resource: str) -> bool:
    """A name with a domain that is not Kubernetes' own."""
    domain = resource.partition("/")[0]
    return (
        _RESOURCE.fullmatch(resource) is not None
        and not domain.endswith("kubernetes.io")
        and not resource.startswith("requests.")
    )
