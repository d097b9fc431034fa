"""A ConfigMap or Secret as lists show it: the names of what is in it, never the values."""

from dataclasses import dataclass

from kubeclient.objects import Obj


@dataclass(frozen=True, slots=True)
class ConfigurationRow:
    namespace: str
    name: str
    keys: tuple[str, ...]
    kind: str  # of a Secret: Opaque, kubernetes.io/tls
    is_fixed: bool  # its content cannot be changed any more
    labels: tuple[tuple[str, str], ...]
    created: str


def configuration_row(obj: Obj) -> ConfigurationRow:
    metadata = obj["metadata"]
    return ConfigurationRow(
        namespace=metadata["namespace"],
        name=metadata["name"],
        keys=tuple(sorted({**(obj.get("data") or {}), **(obj.get("binaryData") or {})})),
        kind=str(obj.get("type") or ""),
        is_fixed=bool(obj.get("immutable")),
        labels=tuple(sorted((metadata.get("labels") or {}).items())),
        created=metadata.get("creationTimestamp") or "",
    )
