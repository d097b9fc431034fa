"""What admission makes of pods; texts as a real kube-apiserver 1.35.8 gave them."""

import re
from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import Operation
from localkube.apiserver.admission.priorities import (
    check_priority_class,
    keep_system_class,
    resolve_priority,
)
from localkube.apiserver.admission.runtime_classes import (
    apply_runtime_class,
    check_overhead,
)
from localkube.apiserver.admission.service_accounts import (
    assign_service_account,
    check_service_account,
)
from localkube.apiserver.admission.taints import tolerate_short_outages
from tests.localkube.apiserver.admission.small_cluster import (
    a_cluster,
    container,
    pod,
    refused,
    write,
)

MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
CLASSES = "priorityclasses.scheduling.k8s.io"
RUNTIME_CLASSES = "runtimeclasses.node.k8s.io"


def test_a_pod_gets_the_default_account_and_its_token() -> None:
    thing = pod("p", container(), container("d"), initContainers=[container("i")])
    assign_service_account(write("pods", thing), a_cluster())
    spec = thing["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    (volume,) = spec["volumes"]
    assert re.fullmatch("kube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5}", volume["name"])
    assert volume["projected"] == {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {
                "configMap": {
                    "name": "kube-root-ca.crt",
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }
            },
            {
                "downwardAPI": {
                    "items": [
                        {
                            "path": "namespace",
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                        }
                    ]
                }
            },
        ],
        "defaultMode": 420,
    }
    mount = {"name": volume["name"], "readOnly": True, "mountPath": MOUNT_PATH}
    for each in [*spec["containers"], *spec["initContainers"]]:
        assert each["volumeMounts"] == [mount]


def test_assigning_an_account_twice_is_assigning_it_once() -> None:
    thing, cluster = pod(), a_cluster()
    assign_service_account(write("pods", thing), cluster)
    first = str(thing)
    assign_service_account(write("pods", thing), cluster)
    assert str(thing) == first


@pytest.mark.parametrize(
    ("of_pod", "of_account", "mounted"),
    [(None, None, True), (False, True, False), (None, False, False), (True, False, True)],
)
def test_the_pod_decides_about_its_token_before_its_account(
    of_pod: bool | None, of_account: bool | None, mounted: bool
) -> None:
    cluster = a_cluster()
    if of_account is not None:
        cluster.put("serviceaccounts", "default", "ns", automountServiceAccountToken=of_account)
    thing = pod()
    if of_pod is not None:
        thing["spec"]["automountServiceAccountToken"] = of_pod
    assign_service_account(write("pods", thing), cluster)
    assert ("volumes" in thing["spec"]) == mounted


def test_a_container_with_something_else_at_the_place_of_the_token_keeps_it() -> None:
    own = {"name": "own", "mountPath": MOUNT_PATH}
    thing = pod("p", container(volumeMounts=[own]), volumes=[{"name": "own", "emptyDir": {}}])
    assign_service_account(write("pods", thing), a_cluster())
    assert [v["name"] for v in thing["spec"]["volumes"]] == ["own"]


def test_pull_secrets_come_from_the_account_unless_the_pod_has_some() -> None:
    cluster = a_cluster()
    cluster.put("serviceaccounts", "default", "ns", imagePullSecrets=[{"name": "s"}])
    without, own = pod(), pod(imagePullSecrets=[{"name": "own"}])
    assign_service_account(write("pods", without), cluster)
    assign_service_account(write("pods", own), cluster)
    assert without["spec"]["imagePullSecrets"] == [{"name": "s"}]
    assert own["spec"]["imagePullSecrets"] == [{"name": "own"}]


def test_an_unknown_account_is_refused() -> None:
    with refused() as error:
        assign_service_account(write("pods", pod(serviceAccountName="zz")), a_cluster())
    assert error.value.status["message"] == (
        'pods "p" is forbidden: error looking up service account ns/zz: '
        'serviceaccount "zz" not found'
    )


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"serviceAccountName": "default"}, "a mirror pod may not reference service accounts"),
        (
            {"volumes": [{"name": "s", "secret": {"secretName": "x"}}]},
            "a mirror pod may not reference secrets",
        ),
        (
            {
                "volumes": [
                    {
                        "name": "t",
                        "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]},
                    }
                ]
            },
            "a mirror pod may not use ServiceAccountToken volume projections",
        ),
    ],
)
def test_mirror_pods_have_no_identity(spec: Obj, why: str) -> None:
    mirror = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    thing = pod(metadata=mirror, **spec)
    assign_service_account(write("pods", thing), a_cluster())
    assert "kube-api-access" not in str(thing)
    with refused() as error:
        check_service_account(write("pods", thing), a_cluster())
    assert error.value.status["message"] == f'pods "p" is forbidden: {why}'


def test_an_account_can_limit_which_secrets_are_mounted() -> None:
    cluster = a_cluster()
    marked = {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}
    cluster.put("serviceaccounts", "default", "ns", metadata=marked, secrets=[{"name": "ok"}])
    check_service_account(write("pods", _with_secret("ok")), cluster)
    with refused() as error:
        check_service_account(write("pods", _with_secret("other")), cluster)
    assert error.value.status["message"] == (
        'pods "p" is forbidden: container c with envVar E referencing secret.secretName="other" '
        "is not allowed because service account default does not reference that secret"
    )


def _with_secret(name: str) -> Obj:
    source = {"secretKeyRef": {"name": name, "key": "k"}}
    env = [{"name": "E", "valueFrom": source}]
    return pod("p", container(env=env), serviceAccountName="default")


def test_a_generated_name_is_shown_by_its_prefix() -> None:
    generated = {"generateName": "gen-"}
    for name in ("", "gen-x7k2p"):
        thing = pod(name, metadata=generated, priorityClassName="absent")
        with refused() as error:
            resolve_priority(write("pods", thing), a_cluster())
        assert error.value.status["message"].startswith('pods "gen-" is forbidden')
    with refused() as error:
        resolve_priority(write("pods", pod("", priorityClassName="absent")), a_cluster())
    assert error.value.status["message"].startswith('pods "Unknown" is forbidden')


def test_without_classes_the_priority_is_zero() -> None:
    thing = pod()
    resolve_priority(write("pods", thing), a_cluster())
    assert thing["spec"]["priority"] == 0
    assert thing["spec"]["preemptionPolicy"] == "PreemptLowerPriority"
    assert "priorityClassName" not in thing["spec"]


def test_a_class_becomes_a_number() -> None:
    cluster = a_cluster()
    cluster.put(CLASSES, "high", value=1000, preemptionPolicy="Never")
    thing = pod(priorityClassName="high")
    resolve_priority(write("pods", thing), cluster)
    assert (thing["spec"]["priority"], thing["spec"]["preemptionPolicy"]) == (1000, "Never")


def test_of_several_default_classes_the_lowest_counts() -> None:
    cluster = a_cluster()
    for name, value in (("a", 7), ("b", 5)):
        cluster.put(CLASSES, name, value=value, globalDefault=True)
    thing = pod()
    resolve_priority(write("pods", thing), cluster)
    assert (thing["spec"]["priorityClassName"], thing["spec"]["priority"]) == ("b", 5)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"priorityClassName": "absent"}, "no PriorityClass with name absent was found"),
        (
            {"priority": 5},
            "the integer value of priority (5) must not be provided in pod spec; priority "
            "admission controller computed 0 from the given PriorityClass name",
        ),
        (
            {"preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; "
            "priority admission controller computed PreemptLowerPriority from the given "
            "PriorityClass name",
        ),
    ],
)
def test_a_priority_of_ones_own_is_refused(spec: Obj, why: str) -> None:
    with refused() as error:
        resolve_priority(write("pods", pod(**spec)), a_cluster())
    assert error.value.status["message"] == f'pods "p" is forbidden: {why}'


def test_an_update_keeps_the_priority() -> None:
    new, old = pod(), pod(priority=7, preemptionPolicy="Never")
    resolve_priority(write("pods", new, Operation.UPDATE, old=old), a_cluster())
    assert (new["spec"]["priority"], new["spec"]["preemptionPolicy"]) == (7, "Never")


def test_only_one_class_is_the_default() -> None:
    cluster = a_cluster()
    first = cluster.put(CLASSES, "d1", value=5, globalDefault=True)
    second = {"metadata": {"name": "d2"}, "value": 6, "globalDefault": True}
    with refused() as error:
        check_priority_class(write(CLASSES, second), cluster)
    assert error.value.status["message"] == (
        'priorityclasses.scheduling.k8s.io "d2" is forbidden: '
        "PriorityClass d1 is already marked as default. Only one default can exist"
    )
    check_priority_class(write(CLASSES, first, Operation.UPDATE, old=first), cluster)
    check_priority_class(write(CLASSES, second | {"globalDefault": False}), cluster)


@pytest.mark.parametrize("name", ["system-node-critical", "system-cluster-critical"])
def test_kubernetes_own_classes_stay(name: str) -> None:
    gone = write(CLASSES, None, Operation.DELETE, old={"metadata": {"name": name}})
    with refused() as error:
        keep_system_class(gone, a_cluster())
    assert error.value.status["message"] == (
        f'priorityclasses.scheduling.k8s.io "{name}" is forbidden: '
        "this is a system priority class and cannot be deleted"
    )


NOT_READY = {
    "key": "node.kubernetes.io/not-ready",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 300,
}
UNREACHABLE = NOT_READY | {"key": "node.kubernetes.io/unreachable"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], [NOT_READY, UNREACHABLE]),
        ([UNREACHABLE], [UNREACHABLE, NOT_READY]),
        ([{"operator": "Exists"}], [{"operator": "Exists"}]),
        (
            [{"operator": "Exists", "effect": "NoSchedule"}],
            [{"operator": "Exists", "effect": "NoSchedule"}, NOT_READY, UNREACHABLE],
        ),
    ],
)
def test_pods_tolerate_short_outages(given: list[Obj], expected: list[Obj]) -> None:
    thing = pod(tolerations=given)
    tolerate_short_outages(write("pods", thing), a_cluster())
    assert thing["spec"]["tolerations"] == expected
    tolerate_short_outages(write("pods", thing), a_cluster())
    assert thing["spec"]["tolerations"] == expected


SANDBOX: dict[str, Any] = {
    "handler": "h",
    "overhead": {"podFixed": {"cpu": "250m"}},
    "scheduling": {
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    },
}


def test_a_runtime_class_brings_overhead_and_placement() -> None:
    cluster = a_cluster()
    cluster.put(RUNTIME_CLASSES, "rc", **SANDBOX)
    given = [{"key": "gpu", "operator": "Exists"}, {"key": "z", "operator": "Exists"}]
    thing = pod(runtimeClassName="rc", tolerations=given)
    attributes = write("pods", thing)
    apply_runtime_class(attributes, cluster)
    check_overhead(attributes, cluster)
    assert thing["spec"]["overhead"] == {"cpu": "250m"}
    assert thing["spec"]["nodeSelector"] == {"a": "b"}
    assert thing["spec"]["tolerations"] == given


def test_a_wider_toleration_makes_a_narrow_one_superfluous() -> None:
    cluster = a_cluster()
    cluster.put(RUNTIME_CLASSES, "rc", scheduling={"tolerations": [{"operator": "Exists"}]})
    narrow = {"key": "gpu", "operator": "Equal", "value": "x", "effect": "NoSchedule"}
    thing = pod(runtimeClassName="rc", tolerations=[narrow])
    apply_runtime_class(write("pods", thing), cluster)
    assert thing["spec"]["tolerations"] == [{"operator": "Exists"}]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"runtimeClassName": "absent"}, 'pod rejected: RuntimeClass "absent" not found'),
        (
            {"runtimeClassName": "rc", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"runtimeClassName": "rc", "nodeSelector": {"a": "c"}},
            "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c",
        ),
        (
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
    ],
)
def test_pods_that_do_not_fit_their_runtime_class_are_refused(spec: Obj, why: str) -> None:
    cluster = a_cluster()
    cluster.put(RUNTIME_CLASSES, "rc", **SANDBOX)
    attributes = write("pods", pod(**spec))
    with refused() as error:
        apply_runtime_class(attributes, cluster)
        check_overhead(attributes, cluster)
    assert error.value.status["message"] == f'pods "p" is forbidden: {why}'
