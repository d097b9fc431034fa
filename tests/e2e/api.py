"""Plain HTTPS to a cluster's API, for what a test needs before and after the client it is about."""

import json
import ssl
import urllib.error
import urllib.request
from functools import cache
from pathlib import Path
from typing import Protocol

from gpupool.testing import Cluster
from kubeclient.objects import Obj


class Served(Protocol):
    """A cluster that can be called: a `Cluster`, or one that was started in another way."""

    @property
    def url(self) -> str: ...
    @property
    def token(self) -> str: ...
    @property
    def ca(self) -> Path: ...


@cache
def _trust(pem: str) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=pem)


def call(cluster: Served, method: str, path: str, body: Obj | None = None) -> tuple[int, Obj]:
    """Status and document of the answer, whatever it says."""
    request = urllib.request.Request(
        cluster.url + path,
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={"Authorization": f"Bearer {cluster.token}", "Content-Type": "application/json"},
    )
    trust = _trust(cluster.ca.read_text(encoding="ascii"))
    try:
        with urllib.request.urlopen(request, context=trust, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def log_of(cluster: Cluster, namespace: str, pod: str) -> str:
    request = urllib.request.Request(
        f"{cluster.url}/api/v1/namespaces/{namespace}/pods/{pod}/log",
        headers={"Authorization": f"Bearer {cluster.token}"},
    )
    trust = _trust(cluster.ca.read_text(encoding="ascii"))
    with urllib.request.urlopen(request, context=trust, timeout=30) as answer:
        text: str = answer.read().decode()
    return text


def make_namespace(cluster: Cluster, name: str, annotations: Obj) -> None:
    body = {"metadata": {"name": name, "annotations": annotations}}
    code, answer = call(cluster, "POST", "/api/v1/namespaces", body)
    assert code == 201, answer


def has_service_account(cluster: Cluster, namespace: str) -> bool:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    return call(cluster, "GET", path)[0] == 200


def ready_nodes(cluster: Cluster) -> list[str]:
    nodes = call(cluster, "GET", "/api/v1/nodes")[1]["items"]
    return [
        node["metadata"]["name"]
        for node in nodes
        for condition in node.get("status", {}).get("conditions", ())
        if condition["type"] == "Ready" and condition["status"] == "True"
    ]
