"""A StatefulSet's status, as kubectl rollout status reads it. Pure."""

from collections.abc import Iterable, Mapping

from kubeclient.objects import Obj
from localkube.controllers.stateful_set_plan import Replica


def status_of(
    stateful_set: Obj, replicas: Iterable[Replica], current: str, update: str, collisions: int
) -> Obj:
    found = list(replicas)
    staying = [replica for replica in found if not replica.terminating]
    counts = {
        "readyReplicas": sum(replica.running_and_ready for replica in found),
        "currentReplicas": sum(replica.revision == current for replica in staying),
        "updatedReplicas": sum(replica.revision == update for replica in staying),
    }
    status: Obj = {
        "observedGeneration": stateful_set["metadata"].get("generation", 0),
        "replicas": len(found),
        "availableReplicas": sum(r.running_and_ready and r.available for r in found),
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": collisions,
        **counts,
    }
    if _is_rolled_out(stateful_set, status):
        status["currentRevision"] = update
        status["currentReplicas"] = status["updatedReplicas"]
    conditions = stateful_set.get("status", {}).get("conditions")
    if conditions:
        status["conditions"] = conditions
    return {key: value for key, value in status.items() if value or key in _ALWAYS}


_ALWAYS = ("replicas", "availableReplicas", "collisionCount")


def _is_rolled_out(stateful_set: Obj, status: Mapping[str, object]) -> bool:
    spec = stateful_set["spec"]
    wanted = spec["replicas"]
    return spec["updateStrategy"]["type"] == "RollingUpdate" and all(
        status[count] == wanted for count in ("replicas", "readyReplicas", "updatedReplicas")
    )
