import asyncio
import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeclient.objects import Obj
from localkube.kubelet.environment import (
    BadConfig,
    container_variables,
    expand,
    expand_all,
    field_of,
    resource_of,
    service_variables,
)
from localkube.kubelet.node import LocalNode, PodAddresses
from localkube.kubelet.pod_record import pod_record

NODE = LocalNode("n", "u", "192.168.0.1", {"cpu": 8000, "memory": 2**34}, PodAddresses(""))
OBJ: Obj = {
    "metadata": {
        "name": "p",
        "namespace": "ns",
        "uid": "u",
        "labels": {"app": "web"},
        "annotations": {"b": "2", "a": "1\n"},
    },
    "spec": {
        "nodeName": "n",
        "serviceAccountName": "runner",
        "containers": [
            {"name": "c", "resources": {"limits": {"memory": "100Mi"}, "requests": {"cpu": "1m"}}}
        ],
    },
}
POD = pod_record(OBJ, "process", 0.0)
SPEC = OBJ["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "1"),
        ("x$(A)$(B)y", "x12y"),
        ("$(NOBODY)", "$(NOBODY)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A ${A} $", "$A ${A} $"),
        ("$(A", "$(A"),
        ("echo $$", "echo $"),
        ("$($(A)", "$($(A)"),
    ],
)
def test_variables_are_expanded_as_kubernetes_does(text: str, expanded: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == expanded


@given(st.text("$)AB ", max_size=12))
def test_a_text_without_references_only_loses_doubled_dollars(text: str) -> None:
    assert expand(text, {}) == text.replace("$$", "$")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p"),
        ("metadata.labels['app']", "web"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations", 'a="1\\n"\nb="2"'),
        ("spec.serviceAccountName", "runner"),
        ("status.hostIP", "192.168.0.1"),
    ],
)
def test_fields_of_the_pod(path: str, value: str) -> None:
    assert field_of(POD, OBJ, NODE, path) == value


def test_another_field_is_refused() -> None:
    with pytest.raises(BadConfig, match=r"unsupported fieldPath: spec\.x"):
        field_of(POD, OBJ, NODE, "spec.x")


@pytest.mark.parametrize(
    ("resource", "divisor", "value"),
    [
        ("limits.memory", "1Mi", "100"),
        ("limits.memory", "", str(100 * 2**20)),
        ("limits.cpu", "1", "8"),
        ("requests.cpu", "1", "1"),
        ("requests.cpu", "1m", "1"),
        ("requests.memory", "1", "0"),
    ],
)
def test_resources_in_units_rounded_up(resource: str, divisor: str, value: str) -> None:
    reference = {"resource": resource, "divisor": divisor}
    assert resource_of(OBJ, SPEC, NODE, reference) == value


class Objects:
    async def config_map(self, namespace: str, name: str) -> Obj | None:
        return {"data": {"k": "v"}} if name == "there" else None

    async def secret(self, namespace: str, name: str) -> Obj | None:
        return {"data": {"k": base64.b64encode(b"s").decode()}} if name == "there" else None


def variables(**spec: object) -> dict[str, str]:
    return asyncio.run(container_variables(POD, OBJ, SPEC | spec, NODE, {"G": "g"}, Objects()))


def test_later_variables_see_and_replace_earlier_ones() -> None:
    env = [{"name": "A", "value": "$(G)1"}, {"name": "G", "value": "$(A)2"}]
    given_from = [{"secretRef": {"name": "there"}}, {"configMapRef": {"name": "there"}}]
    assert variables(env=env, envFrom=given_from) == {"G": "g12", "A": "g1", "k": "v"}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMapKeyRef": {"name": "no", "key": "k"}}, 'configmap "no" not found'),
        ({"secretKeyRef": {"name": "no", "key": "k"}}, 'secret "no" not found'),
        (
            {"configMapKeyRef": {"name": "there", "key": "x"}},
            "couldn't find key x in ConfigMap ns/there",
        ),
        ({"secretKeyRef": {"name": "there", "key": "x"}}, "couldn't find key x in Secret ns/there"),
    ],
)
def test_a_missing_reference_is_named_unless_it_is_optional(source: Obj, message: str) -> None:
    with pytest.raises(BadConfig) as problem:
        variables(env=[{"name": "X", "valueFrom": source}])
    assert str(problem.value) == message
    ((kind, reference),) = source.items()
    optional = {kind: reference | {"optional": True}}
    assert "X" not in variables(env=[{"name": "X", "valueFrom": optional}])


def test_services_are_told_of_by_variables() -> None:
    def service(namespace: str, name: str, address: str) -> Obj:
        port = {"name": "http-x", "port": 80, "protocol": "TCP"}
        return {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterIP": address, "ports": [port]},
        }

    services = [
        service("ns", "my-web", "10.96.0.5"),
        service("ns", "headless", "None"),
        service("other", "far", "10.96.0.6"),
        service("default", "kubernetes", "10.96.0.1"),
    ]
    made = service_variables(services, "ns", ("127.0.0.1", 7443))
    assert made["KUBERNETES_SERVICE_HOST"] == "127.0.0.1"
    assert made["KUBERNETES_SERVICE_PORT_HTTPS"] == "7443"
    assert {key: text for key, text in made.items() if key.startswith("MY_WEB")} == {
        "MY_WEB_SERVICE_HOST": "10.96.0.5",
        "MY_WEB_SERVICE_PORT": "80",
        "MY_WEB_SERVICE_PORT_HTTP_X": "80",
        "MY_WEB_PORT": "tcp://10.96.0.5:80",
        "MY_WEB_PORT_80_TCP": "tcp://10.96.0.5:80",
        "MY_WEB_PORT_80_TCP_PROTO": "tcp",
        "MY_WEB_PORT_80_TCP_PORT": "80",
        "MY_WEB_PORT_80_TCP_ADDR": "10.96.0.5",
    }
    assert not [key for key in made if key.startswith(("HEADLESS", "FAR"))]


def test_brackets_that_never_close_take_no_longer_than_others() -> None:
    """32 kilobytes of these took 4.7 s, and ten times as much a hundred times as long."""
    assert expand("$(" * 500_000, {}) == "$(" * 500_000
    assert expand("$($$" * 100_000, {}) == "$($" * 100_000


class _Nothing:
    async def config_map(self, namespace: str, name: str) -> Obj | None:
        return None

    async def secret(self, namespace: str, name: str) -> Obj | None:
        return None


async def test_variables_that_double_one_another_end_somewhere() -> None:
    doubled = [{"name": "A0", "value": "x" * 1000}]
    doubled += [
        {"name": f"A{number + 1}", "value": f"$(A{number})$(A{number})"} for number in range(60)
    ]
    spec = {**SPEC, "env": doubled}
    with pytest.raises(BadConfig, match="argument list too long"):
        await container_variables(POD, OBJ, spec, NODE, {}, _Nothing())
    many = [{"name": f"B{number}", "value": "$(A6)"} for number in range(1000)]
    spec = {**SPEC, "env": [*doubled[:7], *many]}
    with pytest.raises(BadConfig, match="argument list too long"):
        await container_variables(POD, OBJ, spec, NODE, {}, _Nothing())


async def test_one_config_map_under_many_prefixes_ends_somewhere() -> None:
    class Large:
        async def config_map(self, namespace: str, name: str) -> Obj | None:
            return {"data": {"key": "x" * 1_000_000}}

        async def secret(self, namespace: str, name: str) -> Obj | None:
            return None

    sources = [{"prefix": f"P{number}_", "configMapRef": {"name": "m"}} for number in range(5000)]
    with pytest.raises(BadConfig, match="argument list too long"):
        await container_variables(POD, OBJ, {**SPEC, "envFrom": sources}, NODE, {}, Large())


def test_arguments_that_are_long_together_are_refused() -> None:
    with pytest.raises(BadConfig, match="argument list too long"):
        expand_all(["$(A)"] * 10_000, {"A": "x" * 100_000})
    assert expand_all(["$(A)", "b"], {"A": "1"}) == ["1", "b"]
