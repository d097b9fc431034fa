"""Volume claims of a pod: the nodes that reach its volumes, and what the pod waits for."""

from typing import Any

import pytest

from gpupool.contract.pods import pod_request
from gpupool.contract.volumes import Storage, volume_limits, with_volumes
from gpupool.core.pods import AttachedVolume, PodRequest
from kubeclient.placement import NodeOperator, NodeRequirement, NodeTerm

ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
LATE = {"volumeBindingMode": "WaitForFirstConsumer"}
DONE = {"pv.kubernetes.io/bind-completed": "yes"}


def volume(
    uid: str = "c", claimed: str = "data", labels: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    ref = {"namespace": "default", "name": claimed, "uid": uid}
    return {"metadata": {"labels": labels or {}}, "spec": {"claimRef": ref, **spec}}


LOCAL = volume(nodeAffinity={"required": {"nodeSelectorTerms": [ZONE]}})
VOLUMES = {"local": LOCAL, "any": volume()}


def claim(
    volume: str = "", mode: str = "ReadWriteOnce", phase: str = "", **metadata: Any
) -> dict[str, Any]:
    spec = {"volumeName": volume, "accessModes": [mode], "storageClassName": "late"}
    named = {"name": "data", "namespace": "default", "uid": "c", "annotations": DONE}
    return {"metadata": {**named, **metadata}, "spec": spec, "status": {"phase": phase}}


DATA = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}


def resolved(
    found: dict[str, Any] | None,
    late: Any = None,
    volumes: dict[str, Any] = VOLUMES,
    used: dict[str, Any] = DATA,
) -> PodRequest:
    metadata = {"uid": "u", "name": "p", "namespace": "default"}
    spec = {"containers": [{"name": "c"}], "volumes": [used, {"name": "w"}]}
    pod = {"metadata": metadata, "spec": spec}
    claims = {("default", found["metadata"]["name"]): found} if found else {}
    storage = Storage(claims, volumes, {"late": late} if late else {})
    return with_volumes(pod_request(pod), pod, storage)


def test_a_bound_volume_limits_the_nodes() -> None:
    term = NodeTerm((NodeRequirement("zone", NodeOperator.IN, ("a",)),))
    assert resolved(claim("local")).volume_terms == ((term,),)
    anywhere = resolved(claim("any"))
    assert not anywhere.volume_terms
    assert not anywhere.waits_for


def test_a_pod_waits_for_missing_claims() -> None:
    assert resolved(None).waits_for == 'persistentvolumeclaim "data" not found'
    going = claim("any", deletionTimestamp="now")
    assert resolved(going).waits_for == 'persistentvolumeclaim "data" is being deleted'
    assert resolved(claim()).waits_for == "pod has unbound immediate PersistentVolumeClaims"
    assert resolved(claim("to-come"), LATE).waits_for


def test_claims_that_need_the_scheduler_are_unsupported() -> None:
    (reason,) = resolved(claim(), LATE).unsupported
    assert "first consumer" in reason
    (reason,) = resolved(claim("any", "ReadWriteOncePod")).unsupported
    assert "ReadWriteOncePod" in reason


@pytest.mark.parametrize(
    "found",
    [
        volume(uid="of an earlier claim"),
        volume(claimed="other"),
        {"metadata": {}, "spec": {}},
        {"metadata": {}, "spec": {"claimRef": {"namespace": "default", "name": "data"}}},
    ],
)
def test_a_volume_that_belongs_to_another_claim_is_not_the_volume_of_this_one(found: Any) -> None:
    unbound = resolved(claim("v"), volumes={"v": found})
    assert unbound.waits_for == "pod has unbound immediate PersistentVolumeClaims"


def test_a_claim_that_names_a_volume_is_bound_when_the_controller_says_so() -> None:
    assert resolved(claim("any", annotations={})).waits_for
    assert not resolved(claim("any", annotations={}, phase="Bound")).waits_for
    lost = resolved(claim("any", phase="Lost")).waits_for
    assert lost == 'persistentvolumeclaim "data" bound to non-existent persistentvolume "any"'


def test_the_claim_of_an_ephemeral_volume_must_be_made_for_the_pod() -> None:
    used = {"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}
    assert resolved(None, used=used).waits_for == (
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"'
    )
    volumes = {"any": volume(claimed="p-v")}
    for owner in ([], [{"uid": "another", "controller": True}]):
        theirs = claim("any", name="p-v", ownerReferences=owner)
        assert resolved(theirs, volumes=volumes, used=used).waits_for == (
            "PVC default/p-v was not created for pod default/p (pod is not owner)"
        )
    ours = claim("any", name="p-v", ownerReferences=[{"uid": "u", "controller": True}])
    assert not resolved(ours, volumes=volumes, used=used).waits_for


def test_a_volume_that_cannot_be_read_keeps_its_pod_pending() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "Near", "values": ["a"]}]}
    odd = volume(nodeAffinity={"required": {"nodeSelectorTerms": [term]}})
    (reason,) = resolved(claim("v"), volumes={"v": odd}).unsupported
    assert reason.startswith("the volume of claim data, which cannot be read: ")


def reaches(labels: dict[str, str], node: dict[str, str]) -> bool:
    found = resolved(claim("v"), volumes={"v": volume(labels=labels)})
    return all(any(term.matches("n", node) for term in terms) for terms in found.volume_zones)


BETA = "failure-domain.beta.kubernetes.io/"
STABLE = "topology.kubernetes.io/"


def test_zone_labels_of_a_volume_limit_the_nodes() -> None:
    zoned = {f"{STABLE}zone": "a", f"{STABLE}region": "r"}
    assert reaches(zoned, zoned)
    assert not reaches(zoned, {**zoned, f"{STABLE}zone": "b"})
    assert not reaches(zoned, {f"{STABLE}zone": "a"})  # no region
    assert reaches(zoned, {"disk": "x"})  # a cluster without zones
    assert reaches({}, zoned)


def test_a_zone_label_may_name_several_zones() -> None:
    several = {f"{STABLE}zone": "a__b"}
    assert reaches(several, {f"{STABLE}zone": "b"})
    assert not reaches(several, {f"{STABLE}zone": "c"})
    assert reaches({f"{STABLE}zone": "a____b"}, {f"{STABLE}zone": "c"})  # ignored, as in Kubernetes


def test_an_old_zone_label_of_a_volume_matches_the_new_one_of_a_node() -> None:
    old = {f"{BETA}zone": "a"}
    assert reaches(old, {f"{STABLE}zone": "a"})
    assert not reaches(old, {f"{STABLE}zone": "b"})
    assert not reaches(old, {f"{BETA}zone": "b", f"{STABLE}zone": "a"})
    assert not reaches({f"{STABLE}zone": "a"}, old)


def test_volumes_of_csi_drivers_are_attached_once() -> None:
    csi = {"driver": "ebs", "volumeHandle": "vol-1"}
    found = resolved(claim("v"), volumes={"v": volume(csi=csi)})
    assert found.attached == (AttachedVolume("ebs", "vol-1"),)
    assert not resolved(claim("any")).attached


def test_limits_of_drivers_are_read_from_a_csi_node() -> None:
    drivers = [
        {"name": "ebs", "allocatable": {"count": 25}},
        {"name": "efs"},
        {"name": "odd", "allocatable": {"count": -1}},
        {"name": "nfs", "allocatable": {}},
    ]
    assert volume_limits({"spec": {"drivers": drivers}}) == {"ebs": 25, "odd": 0}
    assert volume_limits({"spec": {"drivers": None}}) == {}
