"""Pods that fit only outside the sample of nodes that kube-scheduler offers are led there."""

from gpupool.contract.extender_messages import ExtenderArgs, PreemptionArgs, Victims
from gpupool.scheduler.refused_pods import AT_ONCE, AT_ONCE_S, LEAST_SAMPLE, TRIED_S, Lead
from gpupool.scheduler.reservations import LONGEST_S
from tests.scheduler.model_api import UNITS, Fate
from tests.scheduler.test_extender_verbs import Verbs

# Nodes that we do not know: kube-scheduler finds them good, and we refuse them.
SAMPLE = tuple(f"other-{number}" for number in range(LEAST_SAMPLE))


def refuse(verbs: Verbs, name: str, nodes: tuple[str, ...] = SAMPLE) -> None:
    """kube-scheduler has heard to which node the pod is led."""
    led = verbs.extender.refused._nominated.get(verbs.uid(name))
    verbs.api.set_status(name, nominatedNodeName=led or "")
    assert verbs.extender.filter(verbs.args(name, *nodes))["NodeNames"] == []


def leads(verbs: Verbs) -> list[tuple[str, str, bool]]:
    found: list[Lead] = verbs.extender.refused.leads()
    return [(lead.pod.name, lead.node, lead.is_nominated) for lead in found]


def refused_in_a_sample(verbs: Verbs, name: str = "p", units: int = UNITS) -> None:
    verbs.offer(name, units)
    refuse(verbs, name)


def test_a_pod_is_led_to_a_node_outside_the_sample() -> None:
    verbs = Verbs()
    refused_in_a_sample(verbs)
    assert leads(verbs) == [("p", "n", True)]
    assert leads(verbs) == []


def test_the_loop_that_leads_is_woken_at_once() -> None:
    woken: list[str] = []
    verbs = Verbs()
    verbs.extender.refused._sampled = lambda: woken.append("now")
    refused_in_a_sample(verbs)
    assert woken == ["now"]


def test_a_pod_is_not_led_to_a_node_that_kube_scheduler_has_refused_itself() -> None:
    """It offers fewer nodes than it looks for, so it has looked at all. That the node changes may
    help: then it is only touched."""
    verbs = Verbs()
    verbs.offer("p", UNITS)
    refuse(verbs, "p", SAMPLE[1:])
    assert leads(verbs) == [("p", "n", False)]


def test_nobody_is_evicted_for_a_pod_that_fits_outside_the_sample() -> None:
    verbs = Verbs()
    verbs.offer("p", UNITS, priority=5)
    proposed = {"n": Victims(("uid-of-another",))}
    args = PreemptionArgs(verbs.api.pods["p"], proposed)
    assert verbs.extender.preempt(args)["NodeNameToMetaVictims"]
    refuse(verbs, "p")
    assert verbs.extender.preempt(args)["NodeNameToMetaVictims"] == {}


def test_two_pods_are_led_to_different_room() -> None:
    verbs = Verbs()
    verbs.api.set_node("m", ill=False)
    verbs.tell()
    for name in ("a", "b", "c", "d", "e"):  # two nodes of two cards
        refused_in_a_sample(verbs, name)
    led = leads(verbs)
    assert sorted(node for _, node, _ in led) == ["m", "m", "n", "n"]
    assert verbs.uid("e") in verbs.extender.refused


def test_a_node_that_kube_scheduler_does_not_take_is_not_tried_again_at_once() -> None:
    verbs = Verbs()
    verbs.api.set_node("m", ill=False)
    verbs.tell()
    refused_in_a_sample(verbs)
    [(_, first, _)] = leads(verbs)
    refuse(verbs, "p")  # it was told to try the node first, and asks about others
    [(_, second, _)] = leads(verbs)
    assert {first, second} == {"m", "n"}
    refuse(verbs, "p")
    [over] = verbs.extender.refused.leads()  # nowhere: the nomination is taken back
    assert (over.pod.name, over.node, over.is_over) == ("p", second, True)
    assert leads(verbs) == []
    assert verbs.extender.refused.has_tried
    verbs.now_s += TRIED_S
    assert leads(verbs) == [("p", first, True)]


def test_a_pod_is_led_again_if_kube_scheduler_has_not_heard_of_it() -> None:
    verbs = Verbs()
    refused_in_a_sample(verbs)
    assert leads(verbs) == [("p", "n", True)]
    assert verbs.extender.filter(verbs.args("p", *SAMPLE))["NodeNames"] == []
    assert leads(verbs) == [("p", "n", True)]


def test_after_all_nodes_were_tried_somebody_may_be_evicted() -> None:
    verbs = Verbs()
    refused_in_a_sample(verbs)
    leads(verbs)
    refuse(verbs, "p")
    proposed = {"n": Victims(("uid-of-another",))}
    args = PreemptionArgs(verbs.api.pods["p"], proposed)
    assert verbs.extender.preempt(args)["NodeNameToMetaVictims"]


def test_the_node_that_kube_scheduler_clears_for_a_pod_stays_nominated() -> None:
    """It nominates that node itself. Without it, it would evict more pods on other nodes."""
    verbs = Verbs()
    refused_in_a_sample(verbs)
    leads(verbs)
    refuse(verbs, "p")
    args = PreemptionArgs(verbs.api.pods["p"], {"n": Victims(("uid-of-another",))})
    assert verbs.extender.preempt(args)["NodeNameToMetaVictims"]
    assert leads(verbs) == []
    verbs.now_s += TRIED_S  # its victims may take longer to end
    assert leads(verbs) == [("p", "n", False)]


async def test_a_node_that_was_taken_by_others_is_tried_again_when_it_is_free() -> None:
    verbs = Verbs()
    verbs.api.set_node("n", ill=True)  # one card is left
    verbs.tell()
    refused_in_a_sample(verbs)
    assert leads(verbs) == [("p", "n", True)]
    verbs.extender.reservations.expire(verbs.now_s + LONGEST_S)
    verbs.extender.filter(verbs.offer("thief", UNITS))
    assert await verbs.bind("thief") == ""
    refuse(verbs, "p", ("n",))  # kube-scheduler has nothing against the node
    refuse(verbs, "p")
    [over] = verbs.extender.refused.leads()
    assert (over.node, over.is_over) == ("n", True)
    verbs.api.delete_pod("thief")
    verbs.tell()
    assert leads(verbs) == [("p", "n", True)]


async def test_a_pod_whose_binding_has_no_answer_is_led_to_the_same_node() -> None:
    verbs = Verbs()
    verbs.extender.filter(verbs.offer("p", UNITS))
    assert "nobody knows" in await verbs.bind("p", Fate.LOST_REQUEST)
    refuse(verbs, "p")
    assert leads(verbs) == [("p", "n", True)]
    assert len(verbs.extender.reservations) == 0


def test_a_pod_whose_volumes_only_kube_scheduler_judges_is_not_led() -> None:
    verbs = Verbs()
    verbs.offer("p", UNITS)
    pod = verbs.api.pods["p"]
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    pod["spec"]["volumes"] = [claim]
    verbs.extender.filter(ExtenderArgs(pod, SAMPLE, None))
    assert leads(verbs) == [("p", "n", False)]


def test_kube_scheduler_pauses_before_it_tries_another_sample() -> None:
    """It tries again whenever its words about the pod change, as they do with each sample."""
    verbs = Verbs()
    refused_in_a_sample(verbs, units=UNITS + 1)
    for _ in range(AT_ONCE - 1):
        assert verbs.extender.filter(verbs.args("p", *SAMPLE))["Error"] == ""
    early = verbs.extender.filter(verbs.args("p", *SAMPLE))
    assert early["Error"].startswith("none of the nodes that were offered has the right cards")
    assert early["NodeNames"] is None
    verbs.now_s += AT_ONCE_S
    refuse(verbs, "p")
    assert verbs.extender.filter(verbs.args("p", "n"))["Error"] == ""  # no sample: all there are


def test_pods_that_are_gone_are_forgotten() -> None:
    verbs = Verbs()
    refused_in_a_sample(verbs)
    leads(verbs)
    refuse(verbs, "p")
    verbs.extender.pod_changed(verbs.api.pods["p"], None)
    refused = verbs.extender.refused
    assert (len(refused), refused._tried, refused._nominated) == (0, {}, {})


def test_a_single_node_is_reserved_without_prioritize() -> None:
    """kube-scheduler takes a single node without asking for scores."""
    verbs = Verbs()
    verbs.extender.filter(verbs.offer("p", UNITS))
    assert verbs.uid("p") in verbs.extender.reservations
