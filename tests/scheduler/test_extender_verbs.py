"""The extender's verbs, called directly: what is kept between two of them, and what may fail."""

import asyncio

import pytest

from gpupool.contract.extender_messages import BindingArgs, ExtenderArgs, PreemptionArgs, Victims
from gpupool.scheduler import extender as extender_module
from gpupool.scheduler import refused_pods
from gpupool.scheduler.bind import LATEST_S
from gpupool.scheduler.extender import Extender
from gpupool.scheduler.reservations import LONGEST_S
from kubeclient.client import Kube
from tests.scheduler.model_api import UNITS, Fate
from tests.scheduler.stepped import Stepped, with_answers


class Verbs(Stepped):
    def __init__(self) -> None:
        super().__init__()
        kube = Kube(self.api)
        self.extender = Extender(kube, self.state, lambda: self.now_s, lambda: self.leads)
        self.api.set_node("n", ill=False)
        self.tell()

    def args(self, name: str, *nodes: str) -> ExtenderArgs:
        return ExtenderArgs(self.api.pods[name], nodes or ("n",), None)

    def offer(self, name: str, units: int, priority: int = 0) -> ExtenderArgs:
        """Add a pod that kube-scheduler asks about."""
        self.api.add_pod(name, units, priority)
        self.api.pods[name]["spec"]["schedulerName"] = "default-scheduler"
        self.tell()
        return self.args(name)

    async def bind(self, name: str, *fates: Fate, node: str = "n") -> str:
        asked = BindingArgs(name, "default", self.uid(name), node)
        return await with_answers(self.api, self.extender.bind(asked), *fates)


async def test_a_pod_that_is_found_bound_to_the_same_node_counts_as_bound() -> None:
    verbs = Verbs()
    verbs.extender.filter(verbs.offer("p", 1))
    # Somebody bound the pod between the two verbs: the Binding conflicts, and the pod is read.
    verbs.api.pods["p"]["spec"]["nodeName"] = "n"
    assert await verbs.bind("p") == ""


async def test_a_pod_that_cannot_be_read_is_not_bound() -> None:
    verbs = Verbs()
    verbs.offer("p", 1)
    said = await verbs.bind("p", Fate.BUSY)
    assert said.startswith("pod default/p cannot be read or bound: ")
    assert verbs.state.ledger.assignment(verbs.uid("p")) is None


async def test_a_refused_binding_releases_the_assignment() -> None:
    verbs = Verbs()
    verbs.extender.filter(verbs.offer("p", 1))
    assert "TooManyRequests" in await verbs.bind("p", Fate.BUSY)
    assert verbs.state.ledger.assignment(verbs.uid("p")) is None


async def test_a_refusal_does_not_release_what_an_earlier_binding_may_have_taken() -> None:
    verbs = Verbs()
    verbs.extender.filter(verbs.offer("p", 1))
    assert "nobody knows" in await verbs.bind("p", Fate.LOST_REQUEST)
    verbs.extender.filter(verbs.args("p"))
    assert "TooManyRequests" in await verbs.bind("p", Fate.BUSY)
    assert verbs.state.ledger.assignment(verbs.uid("p")) is not None


async def test_an_extender_that_may_not_lead_any_more_binds_nothing() -> None:
    verbs = Verbs()
    verbs.extender.filter(verbs.offer("p", 1))
    verbs.leads = False
    assert await verbs.bind("p") == "another may decide about GPUs by now; ask again"
    assert "nodeName" not in verbs.api.pods["p"]["spec"]
    assert verbs.state.ledger.assignment(verbs.uid("p")) is None


async def test_a_pod_with_an_assignment_gets_no_reservation() -> None:
    verbs = Verbs()
    verbs.extender.filter(verbs.offer("p", 1))
    await verbs.bind("p", Fate.LOST_REQUEST)
    (score,) = verbs.extender.prioritize(verbs.args("p"))
    assert score["Host"] == "n"
    assert len(verbs.extender.reservations) == 0


def test_a_reservation_ends_after_a_few_seconds() -> None:
    verbs = Verbs()
    verbs.extender.prioritize(verbs.offer("p", UNITS))
    assert verbs.uid("p") in verbs.extender.reservations
    assert not verbs.extender.reservations.expire(verbs.now_s)
    assert verbs.extender.reservations.expire(verbs.now_s + LONGEST_S)
    assert verbs.uid("p") not in verbs.extender.reservations


def test_a_pod_that_fits_nowhere_gets_no_reservation() -> None:
    verbs = Verbs()
    (score,) = verbs.extender.prioritize(verbs.offer("p", UNITS + 1))
    assert score["Score"] == 0
    assert len(verbs.extender.reservations) == 0


def test_what_is_remembered_between_the_verbs_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extender_module, "_MOST_OFFERED", 2)
    monkeypatch.setattr(refused_pods, "_MOST", 2)
    verbs = Verbs()
    for name in ("a", "b", "c"):
        verbs.extender.filter(verbs.offer(name, UNITS + 1))
    assert [verbs.uid(name) in verbs.extender.refused for name in "abc"] == [True, True, False]
    assert list(verbs.extender._offered) == [verbs.uid("b"), verbs.uid("c")]


def test_a_pod_that_still_fits_nowhere_is_remembered() -> None:
    verbs = Verbs()
    verbs.extender.filter(verbs.offer("p", UNITS + 1))
    assert verbs.extender.refused.leads() == []
    assert verbs.uid("p") in verbs.extender.refused


async def test_victims_that_free_the_right_card_are_confirmed() -> None:
    verbs = Verbs()
    for name in ("low0", "low1"):
        verbs.extender.filter(verbs.offer(name, UNITS))
        assert await verbs.bind(name) == ""
    verbs.offer("high", UNITS, priority=5)
    proposed = Victims((verbs.uid("low1"),), broken_budgets=1)
    args = PreemptionArgs(verbs.api.pods["high"], {"n": proposed})
    answer = verbs.extender.preempt(args)["NodeNameToMetaVictims"]
    assert answer == {"n": {"Pods": [{"UID": verbs.uid("low1")}], "NumPDBViolations": 1}}


def test_a_node_on_which_no_victims_help_is_left_out() -> None:
    verbs = Verbs()
    verbs.offer("high", UNITS + 1, priority=5)
    args = PreemptionArgs(verbs.api.pods["high"], {"n": Victims(())})
    assert verbs.extender.preempt(args) == {"NodeNameToMetaVictims": {}}


async def test_the_scheduler_beside_the_extender_evicts_nobody_because_of_a_reservation() -> None:
    verbs = Verbs()
    await verbs.place("low", UNITS)
    verbs.extender.prioritize(verbs.offer("p", UNITS))
    verbs.api.add_pod("high", UNITS, priority=5)
    assert verbs.try_next() == []
    assert len(verbs.state.preemption_claims) == 0
    verbs.extender.reservations.expire(verbs.now_s + LONGEST_S)
    verbs.state.wake()
    await verbs.settle()
    assert verbs.api.pods["high"]["spec"]["nodeName"] == "n"
    assert "low" in verbs.api.pods


async def lost_binding(verbs: Verbs, name: str = "p") -> None:
    verbs.extender.filter(verbs.offer(name, UNITS))
    assert "nobody knows" in await verbs.bind(name, Fate.LOST_REQUEST)


async def settled(verbs: Verbs, *fates: Fate) -> None:
    await with_answers(verbs.api, verbs.extender.settle_lost(), *fates)


async def test_a_binding_without_answer_keeps_its_place_for_90_seconds() -> None:
    verbs = Verbs()
    await lost_binding(verbs)
    verbs.now_s += LATEST_S
    await settled(verbs)
    assert verbs.state.ledger.assignment(verbs.uid("p")) is not None
    verbs.now_s += 1
    await settled(verbs, Fate.BUSY)  # nobody knows where the pod is
    assert verbs.state.ledger.assignment(verbs.uid("p")) is not None
    await settled(verbs)
    assert verbs.state.ledger.assignment(verbs.uid("p")) is None
    assert verbs.state.ledger.is_settled()


async def test_a_binding_that_happened_without_answer_keeps_its_place() -> None:
    verbs = Verbs()
    verbs.extender.filter(verbs.offer("p", UNITS))
    assert "nobody knows" in await verbs.bind("p", Fate.LOST_ANSWER)
    verbs.now_s += LATEST_S + 1
    await settled(verbs)
    assert verbs.state.ledger.assignment(verbs.uid("p")) is not None
    verbs.tell()
    assert verbs.state.ledger.is_settled()


async def test_a_pod_that_is_asked_for_again_meanwhile_keeps_its_place() -> None:
    verbs = Verbs()
    await lost_binding(verbs)
    verbs.now_s += LATEST_S + 1
    looking = asyncio.ensure_future(verbs.extender.settle_lost())
    await asyncio.sleep(0)
    (read,) = verbs.api.requests
    verbs.extender.filter(verbs.args("p"))
    uid = verbs.uid("p")
    binding = asyncio.ensure_future(verbs.extender.bind(BindingArgs("p", "default", uid, "n")))
    await asyncio.sleep(0)
    verbs.api.settle(read, Fate.OK)
    await looking
    assert verbs.state.ledger.assignment(uid) is not None
    assert await with_answers(verbs.api, asyncio.wait_for(binding, 60)) == ""


async def test_a_pod_that_is_gone_or_new_under_its_name_gives_its_place_back() -> None:
    verbs = Verbs()
    await lost_binding(verbs, "gone")
    await lost_binding(verbs, "again")
    uids = [verbs.uid("gone"), verbs.uid("again")]
    # No watch has told it yet.
    verbs.api.delete_pod("gone")
    verbs.api.delete_pod("again")
    verbs.api.add_pod("again", 1)
    verbs.now_s += LATEST_S + 1
    await settled(verbs)
    assert [verbs.state.ledger.assignment(uid) for uid in uids] == [None, None]


async def test_the_extender_leaves_pods_of_the_scheduler_beside_it_to_the_scheduler() -> None:
    verbs = Verbs()
    verbs.api.add_pod("p", UNITS)
    verbs.tell()
    verbs.extender.filter(verbs.args("p"))
    assert "nobody knows" in await verbs.bind("p", Fate.LOST_REQUEST)
    verbs.now_s += LATEST_S + 1
    await settled(verbs)
    assert verbs.state.ledger.assignment(verbs.uid("p")) is not None
    await verbs.write(verbs.try_next())
    assert verbs.state.ledger.assignment(verbs.uid("p")) is None


async def test_refusals_do_not_keep_the_place_of_a_lost_binding_for_ever() -> None:
    verbs = Verbs()
    await lost_binding(verbs)
    verbs.now_s += LATEST_S
    verbs.extender.filter(verbs.args("p"))
    assert "Forbidden" in await verbs.bind("p", Fate.FORBIDDEN)
    await settled(verbs)
    assert verbs.state.ledger.assignment(verbs.uid("p")) is not None
    verbs.now_s += 1
    await settled(verbs)
    assert verbs.state.ledger.assignment(verbs.uid("p")) is None


def test_the_best_node_alone_is_the_first_of_all_that_fit() -> None:
    verbs = Verbs()
    for name in ("m", "o"):
        verbs.api.set_node(name, ill=False)
    verbs.tell()
    verbs.extender.filter(verbs.offer("first", 1))
    every = verbs.extender.filter(verbs.args("first", "m", "n", "o"))["NodeNames"]
    alone = Extender(Kube(verbs.api), verbs.state, lambda: verbs.now_s, lambda: True, 1)
    args = verbs.offer("p", 1)
    answer = alone.filter(ExtenderArgs(args.pod, ("o", "n", "m"), None))
    assert every == ["m", "n", "o"]
    assert len(answer["NodeNames"]) == 1
    assert answer["FailedNodes"] == answer["FailedAndUnresolvableNodes"] == {}
    assert verbs.uid("p") in alone.reservations
    # The reasons come where no node fits.
    large = verbs.offer("large", 2 * UNITS)
    assert alone.filter(large)["FailedNodes"] | alone.filter(large)["FailedAndUnresolvableNodes"]


def test_pods_that_kube_scheduler_asks_about_count_in_the_mix_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verbs = Verbs()
    counted: list[str] = []
    monkeypatch.setattr(verbs.state.packing, "count", lambda _, pod: counted.append(pod.name))
    args = verbs.offer("p", 1)
    for _ in range(2):
        verbs.extender.filter(args)
    verbs.extender.prioritize(args)
    assert counted == ["p"]
