"""Volume claims of a pod: the nodes that reach its volumes, and what the pod waits for."""

from typing import Any

from gpupool.contract.pods import pod_request
from gpupool.contract.volumes import Storage, with_volumes
from gpupool.core.pods import PodRequest
from kubeclient.placement import NodeOperator, NodeRequirement, NodeTerm

ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
LOCAL = {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [ZONE]}}}}
LATE = {"volumeBindingMode": "WaitForFirstConsumer"}


def claim(volume: str = "", mode: str = "ReadWriteOnce", **metadata: Any) -> dict[str, Any]:
    spec = {"volumeName": volume, "accessModes": [mode], "storageClassName": "late"}
    return {"metadata": metadata, "spec": spec}


def resolved(found: dict[str, Any] | None, late: Any = None) -> PodRequest:
    metadata = {"uid": "u", "name": "p", "namespace": "default"}
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "w"}]
    pod = {"metadata": metadata, "spec": {"containers": [{"name": "c"}], "volumes": volumes}}
    claims = {("default", "data"): found} if found else {}
    storage = Storage(claims, {"local": LOCAL, "any": {"spec": {}}}, {"late": late} if late else {})
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
