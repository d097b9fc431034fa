"""A real kube-apiserver with etcd under the same load, for comparison, where there is one."""

from typing import Any
from urllib.parse import urlsplit

from bench.apiserver import Served, measure
from testbed.build import find


def available() -> bool:
    return find("kube-apiserver") is not None and find("etcd") is not None


def measure_kubernetes(pods: int = 2_000) -> dict[str, Any]:
    """Fewer pods: it takes that much longer. Its own figures scale with the objects it holds."""
    from testbed.controlplane import ControlPlane

    with ControlPlane() as plane:
        address = {
            "port": urlsplit(plane.url).port,
            "token": plane.token,
            "ca": str(plane.ca_file),
        }
        served = Served(plane.pids, address)
        served.load([("POST", "/api/v1/namespaces/default/serviceaccounts", _ACCOUNT)], 1)
        return measure(served, pods)


_ACCOUNT = '{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}'
