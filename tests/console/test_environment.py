"""The environment on a pod's page: values of the pod itself, references to all else."""

import pytest

from gpupool.console.rows.environment import Environment, environments
from kubeclient.objects import Obj
from tests.console.conftest import Office

pytestmark = pytest.mark.timeout(600)

PODS = "/api/v1/namespaces/default/pods"


def field(path: str) -> Obj:
    return {"fieldRef": {"fieldPath": path}}


def pod(*env: Obj, **more: object) -> Obj:
    notes = {"gpupool.io/x": "15"}
    metadata = {"name": "p", "namespace": "n", "annotations": notes, "labels": {"app": "web"}}
    spec = {"nodeName": "n1", "containers": [{"name": "c", "env": env, **more}]}
    return {"metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("variable", "shown"),
    [
        ({"value": "1"}, "A=1"),
        ({}, "A="),
        ({"valueFrom": field("metadata.annotations['gpupool.io/x']")}, "A=15"),
        ({"valueFrom": field("metadata.labels['app']")}, "A=web"),
        ({"valueFrom": field("metadata.labels['none']")}, "A="),
        ({"valueFrom": field("metadata.name")}, "A=p"),
        ({"valueFrom": field("spec.nodeName")}, "A=n1"),
        ({"valueFrom": field("status.podIP")}, "A → status.podIP"),
        ({"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}, "A → limits.cpu"),
        ({"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}, "A → Secret s: k"),
        ({"valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}, "A → ConfigMap m: k"),
        ({"valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "a", "key": "k"}}}, "A → v/a: k"),
        ({"value": "x" * 201}, f"A={'x' * 200}…"),
    ],
)
def test_a_variable_is_shown_with_its_value_or_where_it_comes_from(
    variable: Obj, shown: str
) -> None:
    [found] = environments(pod({"name": "A", **variable}))
    assert found == Environment("c", (shown,))


def test_all_of_a_config_map_is_one_line_and_many_variables_have_an_end() -> None:
    source = [{"prefix": "X_", "configMapRef": {"name": "m"}}, {"secretRef": {"name": "s"}}]
    [found] = environments(pod(envFrom=source))
    assert found.variables == ("X_* → ConfigMap m", "* → Secret s")
    [found] = environments(pod(*({"name": f"A{n}", "value": "1"} for n in range(250))))
    assert (len(found.variables), found.more) == (200, 50)
    assert environments(pod()) == ()


def test_a_pods_page_shows_the_variables_of_its_cards_and_no_secret(office: Office) -> None:
    secret = {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    share = {"limits": {"aliyun.com/gpu-mem": 1}}
    container = {"name": "c", "image": "pause", "resources": share, "env": [secret]}
    office.makes(PODS, {"metadata": {"name": "has-env"}, "spec": {"containers": [container]}})
    page = office.sees("pods/default/has-env")[1]
    shown = page.partition('id="environment"')[2].partition("</section>")[0]
    assert "S → Secret s: k" in shown
    assert "ALIYUN_COM_GPU_MEM_" in shown
