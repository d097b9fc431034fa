import pytest

from localkube.apiserver.admission.attributes import Operation
from localkube.apiserver.admission.namespaces import namespace_lifecycle
from tests.localkube.apiserver.admission.small_cluster import a_cluster, refused, write

CONFIG_MAP = {"metadata": {"name": "c", "namespace": "ns"}}


def test_an_active_namespace_takes_everything() -> None:
    namespace_lifecycle(write("configmaps", CONFIG_MAP), a_cluster())


def test_a_missing_namespace_is_not_found() -> None:
    with refused(404) as error:
        namespace_lifecycle(write("configmaps", CONFIG_MAP, namespace="gone"), a_cluster())
    assert error.value.status["message"] == 'namespaces "gone" not found'
    assert error.value.status["details"] == {"name": "gone", "kind": "namespaces"}


def test_nothing_new_comes_into_a_terminating_namespace() -> None:
    cluster = a_cluster()
    cluster.put("namespaces", "ns", status={"phase": "Terminating"})
    with refused() as error:
        namespace_lifecycle(write("configmaps", CONFIG_MAP), cluster)
    assert error.value.status["message"] == (
        'configmaps "c" is forbidden: unable to create new content in namespace ns '
        "because it is being terminated"
    )
    assert error.value.status["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace ns is being terminated",
            "field": "metadata.namespace",
        }
    ]


@pytest.mark.parametrize("operation", [Operation.UPDATE, Operation.DELETE])
def test_what_is_in_a_terminating_namespace_may_still_change_and_go(operation: Operation) -> None:
    cluster = a_cluster()
    cluster.put("namespaces", "ns", status={"phase": "Terminating"})
    namespace_lifecycle(write("configmaps", CONFIG_MAP, operation, old=CONFIG_MAP), cluster)


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_kubernetes_own_namespaces_stay(name: str) -> None:
    old = {"metadata": {"name": name}}
    with refused() as error:
        namespace_lifecycle(write("namespaces", None, Operation.DELETE, old=old), a_cluster())
    assert error.value.status["message"] == (
        f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    )


@pytest.mark.parametrize("name", ["kube-node-lease", "mine"])
def test_other_namespaces_may_go(name: str) -> None:
    old = {"metadata": {"name": name}}
    namespace_lifecycle(write("namespaces", None, Operation.DELETE, old=old), a_cluster())


def test_what_is_in_no_namespace_needs_none() -> None:
    namespace_lifecycle(write("nodes", {"metadata": {"name": "n"}}), a_cluster())
