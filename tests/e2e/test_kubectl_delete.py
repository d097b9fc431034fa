"""kubectl delete: what goes, what goes with it, and when."""

import pytest

from kubeclient.objects import Obj
from tests.e2e.kubectl import Kubectl, eventually, stream_of
from tests.e2e.objects import config_map, deployment, pod, service, workload

pytestmark = pytest.mark.kubectl


@pytest.fixture
def web(kubectl: Kubectl) -> Kubectl:
    """A ReplicaSet web with two running pods."""
    kubectl.apply(workload("ReplicaSet", "web", 2))
    kubectl.wait("jsonpath={.status.readyReplicas}=2", "rs/web")
    return kubectl


def mine(kubectl: Kubectl, what: str) -> list[str]:
    return [name for name in kubectl.names(what) if name != "kube-root-ca.crt"]


def test_by_name_by_file_and_by_kind_and_name(kubectl: Kubectl) -> None:
    kubectl.apply(*(config_map(name) for name in "abcd"))
    assert kubectl("delete", "cm", "a").startswith('configmap "a" deleted')
    kubectl("delete", "configmap/b", "configmap/c")
    kubectl("delete", "-f", "-", stdin=stream_of(config_map("d")))
    assert mine(kubectl, "cm") == []


def test_by_label(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("a", {"x": "1"}), config_map("b", {"x": "2"}))
    kubectl("delete", "cm", "-l", "x=1")
    assert mine(kubectl, "cm") == ["b"]


def test_all_of_a_kind(kubectl: Kubectl) -> None:
    kubectl.apply(pod("a"), pod("b"), service("web"))
    kubectl("delete", "pods,services", "--all", "--now")
    assert kubectl.names("pods,services") == []


def test_by_field(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("a"), config_map("b"))
    kubectl("delete", "cm", "--field-selector=metadata.name=a")
    assert mine(kubectl, "cm") == ["b"]


def test_what_is_not_there(kubectl: Kubectl) -> None:
    assert 'configmaps "a" not found' in kubectl.refused("delete", "cm", "a")
    assert kubectl.run("delete", "cm", "a", "--ignore-not-found").code == 0


def test_a_dry_run_deletes_nothing(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("a"))
    said = kubectl("delete", "cm", "a", "--dry-run=server")
    assert said.endswith("(server dry run)\n")
    assert mine(kubectl, "cm") == ["a"]


def test_in_the_background_the_dependents_follow(web: Kubectl) -> None:
    web("delete", "rs", "web")
    assert web.names("rs") == []
    eventually(lambda: web.names("pods") == [])


def test_in_the_foreground_the_dependents_go_first(web: Kubectl) -> None:
    web("delete", "rs", "web", "--cascade=foreground")
    assert web.names("rs,pods") == []


def test_foreground_deletion_waits_for_its_dependents(web: Kubectl) -> None:
    hold = '{"metadata":{"finalizers":["example.com/hold"]}}'
    name = web.names("pods")[0]
    web("patch", "pod", name, "--type=merge", "-p", hold)
    web("delete", "rs", "web", "--cascade=foreground", "--wait=false")
    eventually(lambda: web.names("pods") == [name])
    assert web.field(".metadata.finalizers[*]", "rs", "web") == "foregroundDeletion"
    web("patch", "pod", name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    web.wait("delete", "rs/web")


def test_orphans_stay_and_are_adopted_again(web: Kubectl) -> None:
    before = web.names("pods")
    web("delete", "rs", "web", "--cascade=orphan")
    assert web.names("pods") == before
    assert web.field(".items[*].metadata.ownerReferences", "pods") == ""
    web.apply(workload("ReplicaSet", "web", 2))
    web.wait("jsonpath={.status.readyReplicas}=2", "rs/web")
    assert web.names("pods") == before


def test_a_deployment_takes_replica_sets_and_pods_along(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web", 2))
    kubectl("rollout", "status", "deploy/web")
    kubectl("delete", "deploy", "web", "--cascade=foreground")
    assert kubectl.names("deploy,rs,pods") == []


def test_a_finalizer_holds_an_object(kubectl: Kubectl) -> None:
    held: Obj = config_map("c")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    kubectl.apply(held)
    kubectl("delete", "cm", "c", "--wait=false")
    assert kubectl.field(".metadata.deletionTimestamp", "cm", "c")
    more = '{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}'
    said = kubectl.refused("patch", "cm", "c", "--type=merge", "-p", more)
    assert "no new finalizers can be added if the object is being deleted" in said
    kubectl("patch", "cm", "c", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert mine(kubectl, "cm") == []


def test_a_pod_has_its_grace_period(kubectl: Kubectl) -> None:
    nobody = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": kubectl.namespace}}
    kubectl.apply(nobody, pod("web", nodeName=kubectl.namespace, terminationGracePeriodSeconds=77))
    kubectl("delete", "pod", "web", "--wait=false")
    assert kubectl.field(".metadata.deletionGracePeriodSeconds", "pod", "web") == "77"
    assert "Terminating" in kubectl("get", "pod", "web")
    kubectl("delete", "pod", "web", "--wait=false", "--grace-period=5")
    assert kubectl.field(".metadata.deletionGracePeriodSeconds", "pod", "web") == "5"
    kubectl("delete", "pod", "web", "--force", "--grace-period=0")
    kubectl("delete", "node", kubectl.namespace)


def test_now_and_by_force(kubectl: Kubectl) -> None:
    kubectl.apply(pod("a"), pod("b"))
    kubectl.wait("condition=Ready", "pod/a", "pod/b")
    kubectl("delete", "pod", "a", "--now")
    ended = kubectl.run("delete", "pod", "b", "--force", "--grace-period=0")
    assert "Immediate deletion does not wait for confirmation" in ended.err
    assert kubectl.names("pods") == []


def test_a_namespace_takes_everything_along(kubectl: Kubectl) -> None:
    name = f"{kubectl.namespace}-b"
    inner = kubectl.within(name)
    kubectl("create", "namespace", name)
    eventually(lambda: inner.names("sa") == ["default"])
    inner.apply(deployment("web", 2), config_map("c"), service("web"))
    inner("delete", "namespace", name)
    said = inner.refused("get", "namespace", name)
    assert f'namespaces "{name}" not found' in said
    assert inner.names("pods,cm,deploy,rs,svc,sa") == []


def test_a_namespace_that_is_going_takes_nothing_in(kubectl: Kubectl) -> None:
    name = f"{kubectl.namespace}-b"
    inner = kubectl.within(name)
    held = config_map("c")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    kubectl("create", "namespace", name)
    inner.apply(held)
    kubectl("delete", "namespace", name, "--wait=false")
    assert kubectl.field(".status.phase", "namespace", name) == "Terminating"
    said = inner.refused("create", "configmap", "late")
    assert "because it is being terminated" in said
    condition = "NamespaceFinalizersRemaining"
    kubectl.wait(f"condition={condition}", f"namespace/{name}")
    inner("patch", "cm", "c", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    kubectl.wait("delete", f"namespace/{name}")


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_the_namespaces_of_the_cluster_stay(kubectl: Kubectl, name: str) -> None:
    said = kubectl.refused("delete", "namespace", name)
    assert "this namespace may not be deleted" in said
