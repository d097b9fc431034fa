"""Node pools in the console: forms, what they make, and clusters that have no NodePools."""

from collections.abc import Iterator

import pytest

from gpupool.console.machines import MachineType, machine_words, offered_types
from gpupool.console.pages.existing import existing_fields
from gpupool.console.pages.pool_form import (
    Start,
    changes,
    check_count,
    new_fields,
    spec_of,
    start_of,
)
from gpupool.console.pages.pool_sync import node_patch
from gpupool.console.parts.form import Invalid
from gpupool.console.words import ENGLISH, translator
from gpupool.testing import Cluster
from kubeclient.objects import Obj
from tests.console.own_console import OwnConsole, running_console
from tests.e2e.api import call
from tests.e2e.kubectl import eventually

T = translator(ENGLISH)
EMPTY = {"os": "CentOS 7.x", "labels": "", "taints": "", "tags": "", "group": "", "managed": ""}
EMPTY |= {"least": "", "most": ""}
POOLS = "/apis/gpupool.io/v1alpha1/nodepools"
V100 = MachineType("ecs.gn6v-c8g1.2xlarge", 8, 32, "Tesla V100-SXM2-16GB", 1)


def test_types_with_cards_come_first_and_say_what_they_have() -> None:
    plain = MachineType("ecs.g6.large", 2, 8)
    known = {each.name: each for each in (plain, V100)}
    assert machine_words(T, V100) == "8 vCPU, 32 GiB, 1 × Tesla V100-SXM2-16GB"
    offered = offered_types(T, known, ["mine", "ecs.g6.large", "ecs.gn6v-c8g1.2xlarge"])
    assert [name for name, _ in offered] == ["ecs.gn6v-c8g1.2xlarge", "ecs.g6.large", "mine"]
    assert dict(offered)["ecs.g6.large"] == "ecs.g6.large · 2 vCPU, 8 GiB, no cards"
    assert dict(offered)["mine"] == "mine", "of the cluster's file: nobody knows its size here"


def test_new_or_existing_instances_is_asked_before_what_depends_on_it() -> None:
    fields = new_fields(T, Start(), (), existing_fields(T, "", (), {}))
    names = [field.name for field in fields]
    assert names[:5] == ["name", "source", "machines", "count", "type"]


def test_auto_scaling_needs_both_numbers_in_order() -> None:
    assert spec_of(T, {**EMPTY, "least": "0", "most": "4"})["autoscaling"] == {"min": 0, "max": 4}
    for least, most, field in (("1", "", "most"), ("", "4", "least"), ("5", "4", "most")):
        with pytest.raises(Invalid) as refused:
            spec_of(T, {**EMPTY, "least": least, "most": most})
        assert set(refused.value.errors) == {field}
    with pytest.raises(Invalid, match="Wanted 1 to 2, as auto scaling allows; found 3"):
        check_count(T, 3, {"autoscaling": {"min": 1, "max": 2}})


def test_an_edit_names_what_has_gone() -> None:
    before = {"labels": {"a": "1", "b": "2"}, "taints": [{"key": "x"}], "count": 3}
    after = spec_of(T, {**EMPTY, "labels": "a=9"})
    patch = changes(before, after)
    assert patch["labels"] == {"a": "9", "b": None}
    assert patch["taints"] is None
    assert "count" not in patch


def test_an_unknown_preset_is_an_empty_form() -> None:
    assert start_of({"preset": "<b>"}).name == ""


def test_nodes_keep_what_others_have_put_on_them() -> None:
    foreign = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule", "timeAdded": "t"}
    old = {"key": "gpu", "effect": "NoSchedule"}
    node: Obj = {
        "metadata": {"resourceVersion": "7", "labels": {"a": "1", "b": "2", "own": "x"}},
        "spec": {"taints": [foreign, old]},
    }
    before = {"labels": {"a": "1", "b": "2"}, "taints": [old]}
    new = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    patch = node_patch(node, before, {"labels": {"a": "9"}, "taints": [new]})
    assert patch["metadata"] == {"labels": {"a": "9", "b": None}, "resourceVersion": "7"}
    assert patch["spec"] == {"taints": [foreign, new]}
    assert node_patch(node, before, before) == {}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    pools = [{"name": "gpu", "instanceType": V100.name, "count": 1}]
    with Cluster(pools=pools) as running:
        yield running


@pytest.fixture(scope="module")
def console(cluster: Cluster) -> Iterator[OwnConsole]:
    with running_console(cluster.kubeconfig) as found:
        yield found


def test_a_pool_is_created_with_every_field_edited_and_deleted(
    cluster: Cluster, console: OwnConsole
) -> None:
    form = {
        **EMPTY,
        "name": "cgpu",
        "count": "1",
        "type": V100.name,
        "os": "Alibaba Cloud Linux 2.x",
        "labels": "cgpu=true\ncgpu.disable.isolation=false",
        "taints": "gpu=yes:NoSchedule",
        "tags": "team=ai lab",
        "group": "rg-1",
        "managed": "yes",
        "least": "0",
        "most": "3",
    }
    page = console.page("/create/pool?preset=cgpu")
    assert f"{V100.name} · 8 vCPU, 32 GiB, 1 × Tesla V100-SXM2-16GB</option>" in page
    status, page = console.posts("/create/pool", **{**form, "count": "4"})
    assert (status, "as auto scaling allows; found 4" in page) == (422, True)
    assert console.posts("/create/pool", **{**form, "type": "ecs.none"})[0] == 422
    assert console.posts("/create/pool", **form)[0] == 303
    spec = call(cluster, "GET", f"{POOLS}/cgpu")[1]["spec"]
    wanted = {
        "count": 1,
        "instanceType": V100.name,
        "os": "Alibaba Cloud Linux 2.x",
        "labels": {"cgpu": "true", "cgpu.disable.isolation": "false"},
        "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
        "tags": {"team": "ai lab"},
        "resourceGroup": "rg-1",
        "managed": True,
        "autoscaling": {"min": 0, "max": 3},
    }
    assert {key: spec.get(key) for key in wanted} == wanted
    eventually(
        lambda: call(cluster, "GET", f"{POOLS}/cgpu")[1].get("status", {}).get("phase") == "Active",
        within_s=120,
    )
    page = console.page("/pools/cgpu")
    for text in ("1 of 1 nodes are ready.", "team=ai lab", "rg-1", "gpu=yes:NoSchedule"):
        assert text in page
    edited = {**form, "labels": "cgpu=true", "taints": "", "least": "", "most": "", "sync": "yes"}
    assert console.posts("/pools/cgpu/edit", **edited)[0] == 303
    spec = call(cluster, "GET", f"{POOLS}/cgpu")[1]["spec"]
    assert spec["labels"] == {"cgpu": "true"}
    assert not spec.get("taints")
    assert not spec.get("autoscaling")
    selector = "labelSelector=node.gpupool.io%2Fpool%3Dcgpu"
    node = call(cluster, "GET", f"/api/v1/nodes?{selector}")[1]["items"][0]
    assert "cgpu.disable.isolation" not in node["metadata"]["labels"]
    assert not node["spec"].get("taints")
    status, page = console.posts("/pools/cgpu/edit", **{**edited, "least": "2", "most": "3"})
    assert (status, "as auto scaling allows; found 1" in page) == (422, True)
    assert console.posts("/pools/cgpu/scale", count="0")[0] == 303
    assert call(cluster, "GET", f"{POOLS}/cgpu")[1]["spec"]["count"] == 0
    assert console.posts("/pools/cgpu/delete", **{"typed-name": "cgpu"})[0] == 303
    eventually(lambda: call(cluster, "GET", f"{POOLS}/cgpu")[0] == 404, within_s=120)


def test_what_the_quota_forbids_is_refused_in_its_words(console: OwnConsole) -> None:
    form = {**EMPTY, "name": "many", "count": "9999", "type": V100.name}
    status, page = console.posts("/create/pool", **form)
    assert status == 422
    assert "quota" in page
    assert console.posts("/pools/gpu/scale", count="9999")[0] == 422


def test_a_pool_that_is_not_there_has_a_message(console: OwnConsole) -> None:
    assert console.asks("GET", f"{console.home}/pools/nobody")[0] == 404
    assert console.posts("/pools/nobody/scale", count="1")[0] in (404, 502)


def test_without_nodepools_pools_are_labels_of_nodes_and_only_shown() -> None:
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodepools.gpupool.io"
    pools = [{"name": "gpu", "instanceType": V100.name, "count": 1}]
    with Cluster(pools=pools) as cluster, running_console(cluster.kubeconfig) as console:
        node = call(cluster, "GET", "/api/v1/nodes")[1]["items"][0]
        # Its pool would take it away; one that somebody else has made stays.
        assert call(cluster, "DELETE", crd)[0] == 200
        eventually(lambda: call(cluster, "GET", crd)[0] == 404, within_s=60)
        body = {"metadata": {"name": "own", "labels": node["metadata"]["labels"]}}
        assert call(cluster, "POST", "/api/v1/nodes", body)[0] == 201
        page = console.page("/pools")
        assert "This cluster has no NodePool objects" in page
        assert 'id="table-gpu"' in page
        assert "Scale out" not in page
        assert "Create node pool" not in page
        assert console.asks("GET", f"{console.home}/pools/gpu")[0] == 404
