"""The environment of a container: the variables of the pod's spec, with their references resolved.
No I/O but through `Lookup`. Nothing of the server's own environment gets into it."""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from kubeclient.objects import Obj
from kubeclient.placement import amounts
from kubeclient.quantity import milli_value, parse, value
from localkube.kubelet.node import LocalNode
from localkube.kubelet.state import Pod

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CONFIG_MAP, _SECRET = "ConfigMap", "Secret"
# Linux gives a program no longer text, and no more of them together: expansions of expansions would
# fill the memory first.
_LONGEST = 128 << 10
_MOST_TOGETHER = 6 << 20


class BadConfig(Exception):
    """The container refers to something that does not exist. The message is the kubelet's."""


class Lookup(Protocol):
    async def config_map(self, namespace: str, name: str) -> Obj | None: ...

    async def secret(self, namespace: str, name: str) -> Obj | None: ...


def expand(text: str, values: Mapping[str, str]) -> str:
    """$(NAME) is replaced when there is such a variable; $$(NAME) is a plain $(NAME). Raises
    BadConfig if it becomes too long."""
    if "$" not in text:
        return text
    made: list[str] = []
    length, most = 0, max(_LONGEST, len(text))
    for part in _expanded(text, values):
        made.append(part)
        length += len(part)
        if length > most:
            raise BadConfig(f"argument list too long: {text[:60]!r} becomes longer than {most}")
    return "".join(made)


def _expanded(text: str, values: Mapping[str, str]) -> Iterator[str]:
    place = 0
    while (dollar := text.find("$", place)) >= 0:
        yield text[place:dollar]
        following = text[dollar + 1 : dollar + 2]
        end = text.find(")", dollar) if following == "(" else -1
        if following == "$":
            yield "$"
            place = dollar + 2
        elif end >= 0:
            yield values.get(text[dollar + 2 : end], text[dollar : end + 1])
            place = end + 1
        elif following == "(":  # no bracket closes any more
            yield text[dollar:].replace("$$", "$")
            return
        else:
            yield "$"
            place = dollar + 1
    yield text[place:]


def expand_all(texts: Iterable[str], values: Mapping[str, str]) -> list[str]:
    """Arguments of a program. Raises BadConfig if they become too long together."""
    made: list[str] = []
    together = 0
    for text in texts:
        made.append(expand(text, values))
        together += len(made[-1])
        if together > _MOST_TOGETHER and made[-1] is not text:
            raise BadConfig(f"argument list too long: longer than {_MOST_TOGETHER}")
    return made


def service_variables(
    services: Iterable[Obj], namespace: str, api: tuple[str, int]
) -> dict[str, str]:
    """The variables of services. Those of the API server have its real address, not its cluster
    IP."""
    made: dict[str, str] = {}
    for service in sorted(services, key=lambda s: str(s["metadata"]["name"])):
        metadata = service["metadata"]
        is_api = metadata["namespace"] == "default" and metadata["name"] == "kubernetes"
        if is_api or metadata["namespace"] != namespace:
            continue
        spec = service["spec"]
        address = spec.get("clusterIP")
        if address and address != "None" and spec.get("ports"):
            made |= _of_service(metadata["name"], address, spec["ports"])
    port = {"name": "https", "port": api[1], "protocol": "TCP"}
    return made | _of_service("kubernetes", api[0], [port])


def _of_service(name: str, address: str, ports: list[Obj]) -> dict[str, str]:
    prefix = name.upper().replace("-", "_")
    first = ports[0]
    made = {f"{prefix}_SERVICE_HOST": address, f"{prefix}_SERVICE_PORT": str(first["port"])}
    for port in ports:
        if port.get("name"):
            key = port["name"].upper().replace("-", "_")
            made[f"{prefix}_SERVICE_PORT_{key}"] = str(port["port"])
    made[f"{prefix}_PORT"] = _url(address, first)
    for port in ports:
        number, protocol = port["port"], port.get("protocol", "TCP")
        start = f"{prefix}_PORT_{number}_{protocol}"
        made |= {
            start: _url(address, port),
            f"{start}_PROTO": protocol.lower(),
            f"{start}_PORT": str(number),
            f"{start}_ADDR": address,
        }
    return made


def _url(address: str, port: Obj) -> str:
    return f"{port.get('protocol', 'TCP').lower()}://{address}:{port['port']}"


async def container_variables(
    pod: Pod, obj: Obj, spec: Obj, node: LocalNode, given: dict[str, str], lookup: Lookup
) -> dict[str, str]:
    """`given`, then envFrom, then env. Later variables replace earlier ones, and may refer to them.
    Raises BadConfig."""
    made = dict(given)
    together = 0
    for source in spec.get("envFrom") or ():
        found_all = await _all_of(source, pod.namespace, lookup)
        together = _counted(together, *found_all.values())
        made |= found_all
    for variable in spec.get("env") or ():
        name = variable["name"]
        if variable.get("valueFrom"):
            found = await _looked_up(pod, obj, spec, node, variable["valueFrom"], lookup)
            if found is not None:
                made[name] = found
        else:
            made[name] = expand(variable.get("value") or "", made)
        together = _counted(together, made.get(name, ""))
    return made


def _counted(together: int, *values: str) -> int:
    together += sum(map(len, values))
    if together > _MOST_TOGETHER:
        raise BadConfig(f"argument list too long: variables longer than {_MOST_TOGETHER}")
    return together


async def _all_of(source: Obj, namespace: str, lookup: Lookup) -> dict[str, str]:
    kind = _CONFIG_MAP if source.get("configMapRef") else _SECRET
    reference = source.get("configMapRef") or source["secretRef"]
    data = await _data_of(kind, namespace, reference["name"], lookup)
    if data is None and not reference.get("optional"):
        raise BadConfig(f'{kind.lower()} "{reference["name"]}" not found')
    prefix = source.get("prefix") or ""
    return {prefix + key: text for key, text in (data or {}).items()}


async def _looked_up(
    pod: Pod, obj: Obj, spec: Obj, node: LocalNode, source: Obj, lookup: Lookup
) -> str | None:
    if reference := source.get("fieldRef"):
        return field_of(pod, obj, node, reference["fieldPath"])
    if reference := source.get("resourceFieldRef"):
        return resource_of(obj, spec, node, reference)
    if reference := source.get("configMapKeyRef"):
        return await _key_of(_CONFIG_MAP, pod.namespace, reference, lookup)
    if reference := source.get("secretKeyRef"):
        return await _key_of(_SECRET, pod.namespace, reference, lookup)
    raise BadConfig(f"valueFrom {', '.join(sorted(source))} is not supported here")


async def _key_of(kind: str, namespace: str, reference: Obj, lookup: Lookup) -> str | None:
    name, key = reference["name"], reference["key"]
    data = await _data_of(kind, namespace, name, lookup)
    if data is not None and key in data:
        return data[key]
    if reference.get("optional"):
        return None
    if data is None:
        raise BadConfig(f'{kind.lower()} "{name}" not found')
    raise BadConfig(f"couldn't find key {key} in {kind} {namespace}/{name}")


async def _data_of(kind: str, namespace: str, name: str, lookup: Lookup) -> dict[str, str] | None:
    """The data of a ConfigMap or Secret; None if there is no such object."""
    if kind == _CONFIG_MAP:
        found = await lookup.config_map(namespace, name)
        return None if found is None else dict(found.get("data") or {})
    found = await lookup.secret(namespace, name)
    if found is None:
        return None
    return {key: _text(raw) for key, raw in (found.get("data") or {}).items()}


def _text(encoded: str) -> str:
    return base64.b64decode(encoded).decode("utf-8", "surrogateescape")


_KEYED = re.compile(r"metadata\.(?P<map>labels|annotations)\['(?P<key>.*)'\]")


def field_of(pod: Pod, obj: Obj, node: LocalNode, path: str) -> str:
    """A field of the pod, for the downward API."""
    metadata = obj["metadata"]
    if found := _KEYED.fullmatch(path):
        return str((metadata.get(found["map"]) or {}).get(found["key"], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        entries = metadata.get(path.removeprefix("metadata.")) or {}
        return "\n".join(f"{key}={_quoted(text)}" for key, text in sorted(entries.items()))
    host_network = bool(obj["spec"].get("hostNetwork"))
    fields: dict[str, str] = {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "metadata.uid": pod.uid,
        "spec.nodeName": pod.node,
        "spec.serviceAccountName": obj["spec"].get("serviceAccountName", ""),
        "status.hostIP": node.ip,
        "status.hostIPs": node.ip,
        "status.podIP": node.ip if host_network else pod.ip,
        "status.podIPs": node.ip if host_network else pod.ip,
    }
    if path not in fields:
        raise BadConfig(f"unsupported fieldPath: {path}")
    return fields[path]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def resource_of(obj: Obj, spec: Obj, node: LocalNode, reference: Obj) -> str:
    """A value such as limits.cpu, in units of the divisor, rounded up. Without a limit, the limit
    is what the node has."""
    if name := reference.get("containerName"):
        both = (*obj["spec"]["containers"], *(obj["spec"].get("initContainers") or ()))
        spec = next((c for c in both if c["name"] == name), spec)
    kind, _, resource = reference["resource"].partition(".")
    resources = spec.get("resources") or {}
    amount = amounts(resources.get(kind)).get(resource)
    if amount is None:
        amount = node.allocatable.get(resource, 0) if kind == "limits" else 0
    divisor = parse(str(reference.get("divisor") or "1"))
    if divisor.nanos == 0:
        divisor = parse("1")
    unit = milli_value(divisor) if resource == "cpu" else value(divisor)
    return str(-(-amount // max(1, unit)))
