"""Programs that only read the API know the room that the scheduler keeps, and tell the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.cli.defrag import _Asked, _proposal
from gpupool.contract.manifests import PodTemplate
from gpupool.contract.names import LABEL_POD_GROUP, LABEL_POD_GROUP_MIN
from gpupool.contract.pods import pod_request
from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Isolation
from gpupool.engine.cluster import reserved_uid
from gpupool.engine.decide import Placement
from gpupool.engine.node_state import Held
from gpupool.engine.patience import LEAST_PATIENCE_S
from gpupool.scheduler.answers import outlook
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.follow import EVERYBODY, state_of
from gpupool.scheduler.kept_words import told, words_of
from gpupool.scheduler.told_room import told_room
from gpupool.scheduler.what_if import Question, Workload, what_if
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS, Resource
from tests.scheduler.model_api import UNITS
from tests.scheduler.stepped import Stepped
from tests.scheduler.world import POLICY

HALF = UNITS // 2
LONG_S = LEAST_PATIENCE_S + 100.0  # longer than pods usually wait here


def said_by(world: Stepped) -> dict[Resource, list[Obj]]:
    """The API, in which every waiting pod has its condition."""
    for uid, news in world.scheduler._reports._news.items():
        name = next(name for name in world.api.pods if world.uid(name) == uid)
        said = {"type": "PodScheduled", "status": "False", "message": news.why()}
        world.api.set_status(name, conditions=[said])
    return {NODES: list(world.api.nodes.values()), PODS: list(world.api.pods.values())}


def reader(world: Stepped) -> ClusterState:
    return state_of(said_by(world), POLICY, EVERYBODY)


def kept(state: ClusterState) -> dict[str, Held]:
    found = {uid: state.cluster.held(reserved_uid(uid)) for uid in state.cluster.reserved}
    return {uid: held for uid, held in found.items() if held is not None}


async def a_large_pod_waits(*running: str, ill: bool = True, priority: int = 0) -> Stepped:
    """Room is kept for it on a node with one card that is well, or two."""
    world = Stepped()
    world.api.set_node("n", ill=ill)
    for name in running:
        await world.place(name, HALF)
    world.api.add_pod("large", UNITS, priority)
    await world.settle()
    world.now_s += LONG_S
    await world.settle()
    assert len(world.state.kept_room) == 1
    return world


def new(units: int, priority: int = 0) -> Workload:
    world = Stepped()
    world.api.add_pod("new", units, priority)
    return Workload("Pod", "default", "new", pod_request(world.api.pods["new"]), 1)


# -- the sentence ------------------------------------------------------------------------------


@given(
    st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,60}[a-z0-9])?", fullmatch=True),
    st.sets(st.integers(0, 63), min_size=1),
    st.floats(0, 1e7),
)
def test_what_the_sentence_says_is_read_again(node: str, cards: set[int], within_s: float) -> None:
    shares = tuple(CardShare(f"GPU-{at}", at, 1, 1024, UNITS) for at in cards)
    allocation = Allocation((ContainerGpus("c", shares, Isolation.NONE),))
    words = words_of(Placement(node, allocation), "2026-11-17T10:00:00Z", within_s)
    found = told(f"0/1 nodes are available. {words}")
    assert found is not None
    assert found[:3] == (node, frozenset(cards), "2026-11-17T10:00:00Z")
    assert abs(found.within_s - within_s) <= max(30.0, within_s / 4)
    assert found.sentence == words


@given(st.text())
def test_other_words_say_nothing(words: str) -> None:
    assert told(words) is None


@pytest.mark.parametrize(
    "room",
    ["n, expected in 5 s", f"n, card {'9' * 5000}, expected in 5 s", "n, card x, expected in 5 s"],
)
def test_a_sentence_that_is_not_understood_says_nothing(room: str) -> None:
    assert told(f"Reserved for it since then: room on {room} from then.") is None


# -- explain -----------------------------------------------------------------------------------


async def test_explain_tells_that_room_is_kept_for_another() -> None:
    world = await a_large_pod_waits("x", "y")
    await world.end("x")
    world.api.add_pod("small", HALF)
    await world.settle()
    assert not world.api.pods["small"]["spec"].get("nodeName")  # so does the scheduler
    found = outlook(reader(world), pod_request(world.api.pods["small"]))
    assert found.placement is None
    assert "It would fit on node n, but room there is kept for default/large." in found.why


async def test_explain_lets_a_more_important_pod_use_it() -> None:
    world = await a_large_pod_waits("x", "y")
    await world.end("x")
    state = reader(world)
    found = outlook(state, new(HALF, priority=1).request)
    assert found.placement is not None
    assert not state.cluster.reserved  # and leaves nothing behind


async def test_a_pod_finds_its_own_room() -> None:
    world = await a_large_pod_waits("x", "y")
    objects = said_by(world)
    objects[PODS] = [pod for pod in objects[PODS] if pod["metadata"]["name"] not in ("x", "y")]
    state = state_of(objects, POLICY, EVERYBODY)
    found = outlook(state, pod_request(world.api.pods["large"]))
    assert found.placement is not None
    assert "kept for" not in outlook(reader(world), pod_request(world.api.pods["large"])).why


async def test_a_node_that_is_gone_keeps_nothing() -> None:
    world = await a_large_pod_waits("x", "y")
    objects = said_by(world)
    state = state_of({**objects, NODES: []}, POLICY, EVERYBODY)
    with told_room(state):
        assert not state.cluster.reserved


# -- whatif ------------------------------------------------------------------------------------


async def test_whatif_gives_kept_room_to_nobody_else() -> None:
    world = await a_large_pod_waits("x", "y")
    await world.end("x")
    answer = what_if(reader(world), Question([new(HALF)]))
    assert not answer.all_fit
    assert not answer.waiting[0].node  # the large one waits on


async def test_whatif_takes_the_room_with_the_node() -> None:
    world = await a_large_pod_waits("x", "y")
    answer = what_if(reader(world), Question(without=frozenset({"n"})))
    assert sorted(pod.name for pod in answer.moved) == ["x", "y"]


async def test_room_that_is_not_needed_any_more_is_for_those_that_waited() -> None:
    world = Stepped()
    world.api.set_node("n", ill=True)
    await world.place("x", HALF)
    here = {"nodeSelector": {"kubernetes.io/hostname": "n"}}
    for name, units, spec in (("old", HALF, here), ("large", UNITS, {}), ("young", HALF, here)):
        world.api.add_pod(name, units, spec=spec)
    words = "Reserved for it since then: room on n, card 1, expected in 5 s from then."
    said = {"type": "PodScheduled", "status": "False", "message": words}
    world.api.set_status("large", conditions=[said])
    objects = {NODES: list(world.api.nodes.values()), PODS: list(world.api.pods.values())}
    as_it_is = what_if(state_of(objects, POLICY, EVERYBODY), Question())
    assert [pod.node for pod in as_it_is.waiting] == ["", "", ""]
    state = state_of(objects, POLICY, EVERYBODY)
    state.node_changed(None, {**world.api.nodes["n"], "metadata": further_node(world)})
    answer = what_if(state, Question())
    assert {pod.name: pod.node for pod in answer.waiting} == {"old": "n", "large": "m", "young": ""}
    assert [pod.name for pod in answer.waiting if pod.why] == ["young"]


def further_node(world: Stepped) -> Obj:
    world.api.set_node("m", ill=True)
    metadata: Obj = world.api.nodes["m"]["metadata"]
    return metadata


# -- defrag ------------------------------------------------------------------------------------


async def test_defrag_moves_nobody_into_kept_room() -> None:
    world = Stepped()
    world.api.set_node("a", ill=True)
    await world.place("p", HALF)
    await world.place("gone", HALF)
    world.api.set_node("b", ill=True)
    await world.place("q", 1)
    await world.end("gone")
    for name in ("p", "q"):  # each alone on its node, and something makes it again
        owner = {"kind": "ReplicaSet", "controller": True}
        world.api.pods[name]["metadata"]["ownerReferences"] = [owner]
    assert moves(world, priority=0) == 1
    world.api.add_pod("waits", HALF)
    words = "Reserved for it since then: room on a, card 1, expected in 5 s from then."
    said = {"type": "PodScheduled", "status": "False", "message": words}
    world.api.set_status("waits", conditions=[said])
    assert moves(world, priority=0) is None  # half of its card is free, and kept
    assert moves(world, priority=1) == 1


def moves(world: Stepped, priority: int) -> int | None:
    """So that a pod fits that wants a whole card. None: there is no plan."""
    made = Stepped()
    made.api.add_pod("new", UNITS, priority)
    template = PodTemplate("Pod", made.api.pods["new"], 1)
    asked = _Asked(None, "default", 1, apply=False, policy=POLICY)
    objects = {NODES: list(world.api.nodes.values()), PODS: list(world.api.pods.values())}
    plan = _proposal(objects, [template], [template.pod], asked).plan
    return len(plan.moves) if plan is not None else None


# -- anything ----------------------------------------------------------------------------------

SIZES = st.sampled_from([1, HALF, UNITS - 1, UNITS])


@settings(max_examples=60, deadline=None)
@given(st.lists(SIZES, max_size=8), st.lists(SIZES, min_size=1, max_size=4), st.data())
async def test_a_reader_keeps_the_cards_that_the_scheduler_keeps(
    running: list[int], waiting: list[int], data: st.DataObject
) -> None:
    world = Stepped()
    for name in ("n0", "n1"):
        world.api.set_node(name, ill=False)
    for at, units in enumerate(running):
        world.api.add_pod(f"run-{at}", units)
    await world.settle()
    group = {LABEL_POD_GROUP: "g", LABEL_POD_GROUP_MIN: str(len(waiting))}
    labels = group if data.draw(st.booleans()) else {}
    for at, units in enumerate(waiting):
        world.api.add_pod(f"wait-{at}", units, labels=labels)
    await world.settle()
    world.now_s += LONG_S
    await world.settle()
    said_by(world)
    there = sorted(name for name, pod in world.api.pods.items() if pod["spec"].get("nodeName"))
    for name in data.draw(st.lists(st.sampled_from(there), unique=True)) if there else []:
        world.api.delete_pod(name)
    world.tell()
    said_by(world)  # again: what was freed may be kept now, in place of what was kept before
    small = new(data.draw(SIZES))
    objects = {NODES: list(world.api.nodes.values()), PODS: list(world.api.pods.values())}
    state = state_of(objects, POLICY, EVERYBODY)
    told_placement = outlook(state, small.request).placement
    with told_room(state):
        ours, theirs = kept(state), kept(world.state)
        assert {uid: _place(held) for uid, held in ours.items()} == {
            uid: _place(held) for uid, held in theirs.items()
        }
    world.api.add_pod("small", small.request.gpus[0].units)
    world.tell()
    found = world.scheduler._room.decide(world.state.pending[world.uid("small")])
    assert (told_placement is None) == (not isinstance(found, Placement))


def _place(held: Held) -> tuple[str, frozenset[str]]:
    return held.node, frozenset(hold.uuid for hold in held.cards)
