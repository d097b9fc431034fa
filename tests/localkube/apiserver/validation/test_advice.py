"""Warnings: about what is allowed and hardly meant, and about nothing else."""

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.kinds import Kind
from localkube.apiserver.validation.advice import advice


def _kind(group: str, kind: str) -> Kind:
    return Kind(group, "v1", kind, kind.lower() + "s", kind.lower(), True, ())


def _pod(**parts: object) -> Obj:
    container: Obj = {"name": "c", "resources": {}, **parts}
    return {"metadata": {"name": "p"}, "spec": {"containers": [container]}}


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"resources": {"requests": {"memory": "1Gi", "cpu": "1500m"}}},
        {"resources": {"limits": {"memory": "2000m"}}},
        {
            "ports": [
                {"containerPort": 1, "protocol": "TCP"},
                {"containerPort": 1, "protocol": "UDP"},
            ]
        },
        {"env": [{"name": "A"}, {"name": "B"}]},
    ],
)
def test_an_ordinary_pod_gets_no_advice(parts: Obj) -> None:
    assert advice(_pod(**parts), _kind("", "Pod")) == []


def test_ports_that_come_twice_are_told_by_their_places() -> None:
    port = {"containerPort": 1, "protocol": "TCP"}
    where = "spec.containers[0].ports"
    assert advice(_pod(ports=[port, port]), _kind("", "Pod")) == [
        f"{where}[1]: duplicate port definition with {where}[0]"
    ]


def test_templates_are_looked_at_too() -> None:
    pod = _pod(env=[{"name": "A"}, {"name": "A"}])
    template = {"metadata": {"name": "d"}, "spec": {"template": pod}}
    assert advice(template, _kind("apps", "Deployment")) == [
        'spec.template.spec.containers[0].env[1]: hides previous definition of "A", '
        "which may be dropped when using apply"
    ]
