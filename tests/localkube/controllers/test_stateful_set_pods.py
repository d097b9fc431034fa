"""Names, identity and claims of a StatefulSet's pods."""

import pytest

from kubeclient.objects import Obj
from kubeclient.resources import STATEFUL_SETS
from localkube.controllers import revisions
from localkube.controllers import stateful_set_pods as pods

TEMPLATE: Obj = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "nginx"}]},
}


def stateful_set(**spec: object) -> Obj:
    return {
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": "set",
            "annotations": {"a": "b"},
        },
        "spec": {
            "replicas": 2,
            "serviceName": "web",
            "selector": {"matchLabels": {"app": "web"}},
            "template": TEMPLATE,
            "volumeClaimTemplates": [
                {"metadata": {"name": "data", "labels": {"x": "y"}}, "spec": {"some": "thing"}}
            ],
            **spec,
        },
    }


def made(ordinal: int = 0, **spec: object) -> Obj:
    owner = stateful_set(**spec)
    return pods.new_pod(owner, revisions.new_revision(owner, STATEFUL_SETS, 1, 0), ordinal)


def test_a_pod_is_called_after_its_number() -> None:
    metadata = made(3)["metadata"]
    assert metadata["name"] == "web-3"
    assert metadata["labels"] == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "web-3",
        "apps.kubernetes.io/pod-index": "3",
        "controller-revision-hash": metadata["labels"]["controller-revision-hash"],
    }
    assert TEMPLATE["metadata"]["labels"] == {"app": "web"}  # the template is unchanged


def test_a_pod_has_a_host_name_in_the_domain_of_its_service() -> None:
    assert made()["spec"]["hostname"] == "web-0"
    assert made()["spec"]["subdomain"] == "web"
    assert "subdomain" not in made(serviceName="")["spec"]


def test_a_claim_takes_the_place_of_a_volume_of_its_name() -> None:
    volumes = [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "volumes": volumes}}
    assert made(1, template=template)["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}},
        {"name": "tmp", "emptyDir": {}},
    ]


def test_claims_are_named_after_template_and_pod() -> None:
    (claim,) = pods.claims(stateful_set(), 1)
    assert claim["metadata"] == {
        "name": "data-web-1",
        "namespace": "default",
        "labels": {"x": "y", "app": "web"},
    }


@pytest.mark.parametrize(
    ("name", "ordinal"),
    [("web-0", 0), ("web-12", 12), ("web", None), ("web-x", None), ("other-1", None)],
)
def test_a_member_is_known_by_its_name(name: str, ordinal: int | None) -> None:
    assert pods.ordinal_of({"metadata": {"name": name}}, stateful_set()) == ordinal


def pod(ordinal: int, uid: str = "pod") -> Obj:
    return {"metadata": {"name": f"web-{ordinal}", "uid": uid}}


def reference(kind: str, name: str, uid: str, *, controller: bool = True) -> Obj:
    return {
        "apiVersion": "v1" if kind == "Pod" else "apps/v1",
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": controller,
        "blockOwnerDeletion": True,
    }


TO_SET = reference("StatefulSet", "web", "set")
TO_BEYOND = reference("Pod", "web-7", "pod")


@pytest.mark.parametrize(
    ("when_deleted", "when_scaled", "ordinal", "owners"),
    [
        ("Retain", "Retain", 0, []),
        ("Retain", "Retain", 7, []),
        ("Delete", "Retain", 0, [TO_SET]),
        ("Delete", "Retain", 7, [TO_SET]),
        ("Retain", "Delete", 0, []),
        ("Retain", "Delete", 7, [TO_BEYOND]),
        ("Delete", "Delete", 0, [TO_SET]),
        ("Delete", "Delete", 7, [TO_BEYOND]),
    ],
)
def test_a_claim_goes_with_the_set_or_the_pod_as_the_policy_says(
    when_deleted: str, when_scaled: str, ordinal: int, owners: list[Obj]
) -> None:
    policy = {"whenDeleted": when_deleted, "whenScaled": when_scaled}
    owner = stateful_set(persistentVolumeClaimRetentionPolicy=policy)
    for before in ([], [TO_SET], [TO_BEYOND] if ordinal == 7 else []):
        claim = {"metadata": {"name": "data-web-0", "ownerReferences": before}}
        assert pods.owners_of_claim(claim, owner, pod(ordinal)) == owners


def test_a_claim_that_somebody_else_manages_is_left_to_them() -> None:
    policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    owner = stateful_set(persistentVolumeClaimRetentionPolicy=policy)
    other = reference("Database", "db", "db")
    claim = {"metadata": {"name": "data-web-0", "ownerReferences": [other, TO_SET]}}
    assert pods.has_other_controller(claim, owner, pod(0))
    assert pods.owners_of_claim(claim, owner, pod(0)) == [other]


def test_a_claim_of_an_earlier_set_is_left_to_the_garbage_collector() -> None:
    policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    owner = stateful_set(persistentVolumeClaimRetentionPolicy=policy)
    before = [reference("StatefulSet", "web", "an earlier set")]
    claim = {"metadata": {"name": "data-web-0", "ownerReferences": before}}
    assert pods.owners_of_claim(claim, owner, pod(0)) == before


def test_a_claim_of_an_earlier_pod_is_stale() -> None:
    claim = {"metadata": {"ownerReferences": [reference("Pod", "web-0", "earlier")]}}
    assert pods.is_stale(claim, "web-0")
    assert not pods.is_stale(claim, "web-0", "earlier")
    assert not pods.is_stale(claim, "web-1")
