"""Ports of a service as lines of a form, and back. Pure.

One port in a line: 80, 80:8888 (to another port of the pods, or one by name), 53/UDP; a name after
it: 80:8888 http.
"""

import re

from gpupool.console.parts.form import Invalid
from gpupool.console.words import Translate
from kubeclient.objects import Obj

_LINE = re.compile(
    r"(?P<port>\d{1,5})(?::(?P<target>[a-z0-9-]{1,15}))?(?:/(?P<protocol>TCP|UDP|SCTP))?"
    r"(?:\s+(?P<name>[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?))?",
    re.IGNORECASE,
)
_LAST = 65_535


def port_lines(ports: list[Obj]) -> str:
    return "\n".join(map(_line, ports))


def _line(port: Obj) -> str:
    number, target = port.get("port"), port.get("targetPort")
    text = str(number) if target in (None, "", number) else f"{number}:{target}"
    if (port.get("protocol") or "TCP") != "TCP":
        text += f"/{port['protocol']}"
    return f"{text} {port['name']}" if port.get("name") else text


def ports_of(t: Translate, field: str, text: str, before: list[Obj] | None = None) -> list[Obj]:
    """`before`: the ports as they are; those that stay keep what the form does not show, like the
    port of the nodes. Raises Invalid."""
    kept = {(port.get("port"), port.get("protocol") or "TCP"): port for port in before or ()}
    found: dict[tuple[int, str], Obj] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        port = _port(line.strip())
        if port is None:
            words = t(
                "line {number}: wanted {wanted}, found: {found}",
                number=number,
                wanted="80, 80:8888, 53/UDP",
                found=line.strip(),
            )
            raise Invalid({field: words})
        key = (port["port"], port["protocol"])
        if key in found:
            raise Invalid({field: t("Port {port} is there twice.", port=port["port"])})
        found[key] = {**kept.get(key, {}), **port}
    return _named(list(found.values()))


def _port(line: str) -> Obj | None:
    match = _LINE.fullmatch(line)
    if match is None or not 0 < int(match["port"]) <= _LAST:
        return None
    number, target = int(match["port"]), match["target"] or match["port"]
    if target.isdecimal() and not 0 < int(target) <= _LAST:
        return None
    port: Obj = {"port": number, "protocol": (match["protocol"] or "TCP").upper()}
    port["targetPort"] = int(target) if target.isdecimal() else target
    return {**port, "name": match["name"]} if match["name"] else port


def _named(ports: list[Obj]) -> list[Obj]:
    """Several ports need names."""
    if len(ports) < 2:
        return ports
    return [{"name": f"{port['protocol'].lower()}-{port['port']}", **port} for port in ports]
