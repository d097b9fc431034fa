"""PodSecurity: the labels for levels on a namespace are validated, but no level is enforced.

Pods of a local cluster run with the rights of the user who started it, at most. Whoever asks for
a level is told so, on every write of the namespace.
"""

from localkube.apiserver.admission.attributes import (
    Attributes,
    ClusterView,
    Operation,
)
from localkube.apiserver.status import FieldError, invalid, invalid_value

_PREFIX = "pod-security.kubernetes.io/"
_MODES = ("enforce", "audit", "warn")
_LEVELS = ("privileged", "baseline", "restricted")


def check_levels(attributes: Attributes, cluster: ClusterView) -> None:
    namespace = attributes.obj
    if namespace is None or attributes.operation is Operation.DELETE or attributes.subresource:
        return
    labels = namespace["metadata"].get("labels") or {}
    errors: list[FieldError] = []
    for mode in _MODES:
        level = labels.get(f"{_PREFIX}{mode}", "privileged")
        if level not in _LEVELS:
            field = f"metadata.labels[{_PREFIX}{mode}]"
            errors.append(invalid_value(field, level, f"must be one of {', '.join(_LEVELS)}"))
        elif level != "privileged":
            asked = f"{_PREFIX}{mode}={level}"
            attributes.warnings.append(f"{asked} has no effect: this cluster does not enforce it")
    if errors:
        raise invalid("Namespace", "", attributes.name, errors)
