"""Warnings about objects that are valid and yet probably a mistake. kubectl prints them."""

import base64
from collections.abc import Callable, Iterator, Mapping

from kubeclient import quantity
from kubeclient.objects import Obj
from localkube.apiserver.kinds import Kind
from localkube.apiserver.schema.crd_rules import crd_warnings
from localkube.apiserver.validation.formats import dns_label

_GONE_VOLUMES = {
    "cephfs": "cephfs: deprecated in v1.28, non-functional in v1.31+",
    "rbd": "rbd: deprecated in v1.28, non-functional in v1.31+",
    "glusterfs": "glusterfs: deprecated in v1.25, non-functional in v1.26+",
    "scaleIO": "scaleIO: deprecated in v1.16, non-functional in v1.22+",
    "storageos": "storageOS: deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "quobyte: deprecated in v1.22, non-functional in v1.25+",
}
_IN_BYTES = ("memory", "ephemeral-storage")
_SMALL = frozenset("mun")  # suffixes of less than one


def advice(obj: Obj, kind: Kind) -> list[str]:
    """Of an object that is otherwise valid."""
    found = _ADVICE.get((kind.group, kind.kind))
    return list(found(obj)) if found is not None else []


def _pod(obj: Obj) -> Iterator[str]:
    return _pod_spec(obj["spec"], "spec")


def _template(obj: Obj) -> Iterator[str]:
    return _pod_spec(obj["spec"]["template"]["spec"], "spec.template.spec")


def _job(obj: Obj) -> Iterator[str]:
    yield from _name_for_pods(obj)
    yield from _template(obj)


def _cron_job(obj: Obj) -> Iterator[str]:
    yield from _name_for_pods(obj)
    spec = obj["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    yield from _pod_spec(spec, "spec.jobTemplate.spec.template.spec")


def _name_for_pods(obj: Obj) -> Iterator[str]:
    name = obj["metadata"]["name"]
    complaints = ["must not contain dots"] if "." in name else list(dns_label(name))
    if complaints:
        yield (
            "metadata.name: this is used in Pod names and hostnames, which can result in "
            "surprising behavior; a DNS label is recommended: "
            f"[{' '.join(complaints)}]"
        )


def _pod_spec(spec: Obj, path: str) -> Iterator[str]:
    for place, volume in enumerate(spec.get("volumes", ())):
        for name in volume:
            if name in _GONE_VOLUMES:
                yield f"{path}.volumes[{place}].{_GONE_VOLUMES[name]}"
    for group in ("initContainers", "containers"):
        for place, container in enumerate(spec.get(group, ())):
            yield from _container(container, f"{path}.{group}[{place}]")


def _container(container: Obj, path: str) -> Iterator[str]:
    resources = container["resources"]
    for list_name in ("limits", "requests"):
        for name, amount in resources.get(list_name, {}).items():
            if name in _IN_BYTES and amount[-1:] in _SMALL and _is_fraction(amount):
                yield (
                    f"{path}.resources.{list_name}[{name}]: fractional byte value "
                    f'"{amount}" is invalid, must be an integer'
                )
    if len(container.get("ports", ())) > 1:
        yield from _repeated_ports(container["ports"], path)
    names = [variable["name"] for variable in container.get("env", ())]
    if len(set(names)) < len(names):
        for place, name in enumerate(names):
            if name in names[:place]:
                hides = f'hides previous definition of "{name}"'
                yield f"{path}.env[{place}]: {hides}, which may be dropped when using apply"


def _repeated_ports(ports: list[Obj], path: str) -> Iterator[str]:
    first: dict[tuple[int, str, str, int], int] = {}
    for place, port in enumerate(ports):
        key = (port["containerPort"], port["protocol"], port.get("hostIP", ""))
        known = first.setdefault((*key, port.get("hostPort", 0)), place)
        if known != place:
            yield (f"{path}.ports[{place}]: duplicate port definition with {path}.ports[{known}]")


def _is_fraction(amount: str) -> bool:
    return quantity.parse(amount).nanos % 1_000_000_000 != 0


def _secret(obj: Obj) -> Iterator[str]:
    if obj.get("type") == "kubernetes.io/tls":
        for key, name in (("tls.crt", "certificate"), ("tls.key", "key")):
            if b"-----BEGIN" not in base64.b64decode(obj.get("data", {}).get(key, "")):
                yield f"tls: failed to find any PEM data in {name} input"
                return


def _custom_kind(obj: Obj) -> Iterator[str]:
    return iter(crd_warnings(obj))


_ADVICE: Mapping[tuple[str, str], Callable[[Obj], Iterator[str]]] = {
    ("", "Pod"): _pod,
    ("", "Secret"): _secret,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _custom_kind,
    ("apps", "Deployment"): _template,
    ("apps", "ReplicaSet"): _template,
    ("apps", "StatefulSet"): _template,
    ("apps", "DaemonSet"): _template,
    ("batch", "Job"): _job,
    ("batch", "CronJob"): _cron_job,
}
