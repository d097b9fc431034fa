"""Addresses that the server gives out: cluster IPs and node ports of services.

What is taken is read off the services themselves, so a restart or a rolled-back write needs no
repair. Both ranges are walked from a remembered place: a freed address rests before its next use.
"""

import ipaddress
import random
from typing import TypeVar

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.defaults.service_fields import needs_health_check_port
from localkube.apiserver.status import FieldError
from localkube.apiserver.store.watch_log import DELETED, Event

SERVICE_RANGE = ipaddress.ip_network("10.96.0.0/12")
K = TypeVar("K")

NODE_PORTS = range(30000, 32768)
KUBERNETES_IP = "10.96.0.1"


class ServiceAddresses:
    def __init__(self) -> None:
        self._ips: dict[str, int] = {}  # how many services hold it: 1, but never trust a count
        self._ports: dict[int, int] = {}
        self._next_ip = 10
        # Anywhere: the clusters of one machine share its ports, and would all begin with the same.
        self._next_port = random.randrange(len(NODE_PORTS))

    def changed(self, event: Event) -> None:
        """Called with every change of a service in the store."""
        if event.previous is not None:
            self._hold(event.previous.obj(), -1)
        if event.type != DELETED:
            self._hold(event.record.obj(), +1)

    def complete(self, new: Obj, old: Obj | None) -> list[FieldError]:
        """Sets the addresses and ports that the service leaves to the server. Returns an error for
        each one that it asks for and cannot have.
        """
        spec, before = new["spec"], (old or {}).get("spec", {})
        if spec.get("type") == "ExternalName":
            for key in ("clusterIP", "clusterIPs"):
                spec.pop(key, None)
            return []
        errors = self._complete_ip(spec, before)
        if needs_health_check_port(spec) and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = self._free_port(set())
        if spec.get("type") in ("NodePort", "LoadBalancer"):
            if spec.get("allocateLoadBalancerNodePorts") is not False:
                errors += self._complete_ports(spec, before)
        elif old is not None and before.get("type") in ("NodePort", "LoadBalancer"):
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
        return errors

    def _complete_ip(self, spec: Obj, before: Obj) -> list[FieldError]:
        ip = spec.get("clusterIP") or before.get("clusterIP")
        if not ip:
            ip = self._free_ip()
        elif ip != "None" and ip != before.get("clusterIP"):
            problem = _ip_problem(ip, taken=ip in self._ips)
            if problem:
                text = f"failed to allocate IP {ip}: {problem}"
                return [status.invalid_value("spec.clusterIPs", [ip], text)]
        spec["clusterIP"], spec["clusterIPs"] = ip, [ip]
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        return []

    def _complete_ports(self, spec: Obj, before: Obj) -> list[FieldError]:
        errors = []
        had = {
            (p.get("protocol"), p.get("port")): p.get("nodePort") for p in before.get("ports") or ()
        }
        kept = set(had.values())
        given: set[int] = set()
        for index, port in enumerate(spec.get("ports") or ()):
            wanted = port.get("nodePort")
            field = f"spec.ports[{index}].nodePort"
            if not wanted:
                wanted = had.get((port.get("protocol"), port.get("port"))) or self._free_port(given)
            elif wanted not in NODE_PORTS:
                text = "provided port is not in the valid range. The range of valid ports is "
                text += f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
                errors.append(status.invalid_value(field, wanted, text))
            elif wanted in self._ports and wanted not in kept:
                errors.append(
                    status.invalid_value(field, wanted, "provided port is already allocated")
                )
            port["nodePort"] = wanted
            given.add(wanted)
        return errors

    def _free_ip(self) -> str:
        size = SERVICE_RANGE.num_addresses
        for _ in range(size):
            # Counts on instead of taking the lowest free address: an address is in `_ips` only
            # after its service is stored, and admission may await between this choice and the
            # store.
            self._next_ip = self._next_ip % (size - 2) + 1
            ip = str(SERVICE_RANGE[self._next_ip])
            if ip not in self._ips:
                return ip
        raise status.internal("failed to allocate a serviceIP: range is full")

    def _free_port(self, given: set[int]) -> int:
        for _ in NODE_PORTS:
            self._next_port = (self._next_port + 1) % len(NODE_PORTS)
            port = NODE_PORTS[self._next_port]
            if port not in self._ports and port not in given:
                return port
        raise status.internal("failed to allocate a nodePort: range is full")

    def _hold(self, service: Obj, by: int) -> None:
        spec = service.get("spec", {})
        for ip in spec.get("clusterIPs") or ():
            _count(self._ips, ip, by)
        for port in spec.get("ports") or ():
            if port.get("nodePort"):
                _count(self._ports, port["nodePort"], by)
        if spec.get("healthCheckNodePort"):
            _count(self._ports, spec["healthCheckNodePort"], by)


def _ip_problem(ip: str, *, taken: bool) -> str:
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return "not a valid IP address"
    if address not in SERVICE_RANGE:
        return "the provided network does not match the current range"
    return "provided IP is already allocated" if taken else ""


def _count(counts: dict[K, int], key: K, by: int) -> None:
    left = counts.get(key, 0) + by
    if left > 0:
        counts[key] = left
    else:
        counts.pop(key, None)
