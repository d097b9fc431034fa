"""The whole cluster, as `whatif` and `defrag` ask about it."""

from gpupool.cli.scenario import whole_state
from gpupool.contract.allocation import allocation_annotations
from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Isolation
from gpupool.engine.defrag import Plan, Rules, room_for
from gpupool.scheduler.what_if import Question, what_if
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS, VOLUME_CLAIMS, VOLUMES, Resource
from tests.engine.building import whole
from tests.scheduler.test_what_if import node, pod


def volume_on(name: str) -> dict[Resource, list[Obj]]:
    """A volume that only this node reaches, and its claim."""
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}
    reach = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
    ref = {"namespace": "team", "name": "data", "uid": "claim"}
    claim = {
        "metadata": {"name": "data", "namespace": "team", "uid": "claim"},
        "spec": {"volumeName": "disk"},
        "status": {"phase": "Bound"},
    }
    volume = {"metadata": {"name": "disk"}, "spec": {"claimRef": ref, "nodeAffinity": reach}}
    return {VOLUMES: [volume], VOLUME_CLAIMS: [claim]}


def named_node(name: str, cards: int) -> Obj:
    made = node(name, cards)
    made["metadata"]["labels"] = {"kubernetes.io/hostname": name}
    return made


def running(name: str, cards: int, on: str, **spec: object) -> Obj:
    made = pod(name, cards)
    shares = tuple(CardShare(f"{on}-{at}", at, 16, 16384, 16) for at in range(cards))
    allocation = Allocation((ContainerGpus("c", shares, Isolation.WHOLE),))
    made["metadata"]["annotations"] = allocation_annotations(allocation, now_ns=0)
    made["spec"] |= {"nodeName": on, **spec}
    return made


DISK = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}


def objects() -> dict[Resource, list[Obj]]:
    return {
        NODES: [named_node("a", 4), named_node("b", 4)],
        PODS: [running("bound", 2, "a", **DISK), running("free", 1, "b")],
        **volume_on("a"),
    }


def test_a_pod_of_a_node_that_goes_waits_where_its_volume_goes_with_it() -> None:
    state = whole_state(objects(), "best-fit")
    (fate,) = what_if(state, Question(without={"a"})).moved
    assert (fate.name, fate.node) == ("bound", "")
    assert "volume node affinity conflict" in fate.why


def test_no_pod_is_moved_away_from_its_volume() -> None:
    state = whole_state(objects(), "best-fit")
    plan = room_for(state.cluster, (whole("large", 4),), state.policy, Rules(3))
    assert isinstance(plan, Plan)
    assert [move.pod.name for move in plan.moves] == ["free"]
