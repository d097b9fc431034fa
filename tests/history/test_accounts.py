"""From two moments to sums: who had what for how long, and what is unknown."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.core.gpu import CardShare
from gpupool.core.readings import CardReading, ContainerUse
from gpupool.history.accounts import entries
from gpupool.history.facts import Held, Moment, NodeFacts, user_of, workload_of
from gpupool.history.samples import Sample
from gpupool.history.series import Key, Kind

MINUTE = 60_000
T = 1_700_000_000_000
SHARE = CardShare("GPU-a", 0, 3, 3226, 15)
HELD = Held(
    "research",
    "trainer-0",
    "main",
    "u1",
    "StatefulSet/trainer",
    "ann",
    "n1",
    (SHARE,),
    0,
    3,
    T,
    None,
)
WAITS = replace(HELD, uid="u2", pod="trainer-1", node="", shares=())
NODES = {"n1": NodeFacts("cgpu", ("GPU-a",), 15)}
POD = Key(Kind.CONTAINER, "research/trainer-0/main")
CARD = Key(Kind.CARD, "GPU-a")


def moment(at_ms: int, *held: Held, use: ContainerUse | None = None) -> Moment:
    cards = {} if use is None else {"GPU-a": CardReading("GPU-a", 900, containers=(use,))}
    read = {} if use is None else {"n1": at_ms / 1000}
    return Moment(at_ms, NODES, {(h.uid, h.container): h for h in held}, cards, read)


def use(percent: int, idle_s: float, watched_s: float = 0) -> ContainerUse:
    return ContainerUse(
        "research",
        "trainer-0",
        "main",
        900,
        uid="u1",
        sm_percent=percent,
        idle_s=idle_s,
        watched_since_s=watched_s,
        memory_peak_mib=1000,
    )


def test_a_share_counts_as_its_part_of_the_card() -> None:
    found = entries(moment(T, HELD), moment(T + MINUTE, HELD, use=use(50, 0)))
    expected = Sample(
        seen=60_000,
        asked=12_000,
        given=12_000,
        told=12_000,
        used=30_000,
        memory_given=193_560,
        memory_used=54_000,
        known=12_000,
        within=12_000,  # it ran for half of the time, and has a fifth of the card
        peak=1000,
    )
    assert found[POD].sample == expected
    assert found[Key(Kind.NAMESPACE, "research")].sample == expected
    assert found[Key(Kind.USER, "ann")].sample == expected
    card = found[CARD].sample
    assert (card.have, card.given, card.told, card.used) == (60_000, 12_000, 60_000, 30_000)
    assert found[Key(Kind.CLUSTER, "")].sample._replace(asked=0) == card


def test_a_pod_that_waits_asks_and_has_nothing() -> None:
    found = entries(moment(T, WAITS), moment(T + MINUTE, WAITS))
    sample = found[Key(Kind.WORKLOAD, "research/StatefulSet/trainer")].sample
    assert (sample.asked, sample.given) == (12_000, 0)
    assert found[Key(Kind.CLUSTER, "")].sample.asked == 12_000


def test_a_silent_agent_leaves_the_use_unknown() -> None:
    sample = entries(moment(T, HELD), moment(T + MINUTE, HELD))[POD].sample
    assert (sample.given, sample.told, sample.used, sample.idle) == (12_000, 0, 0, 0)


def test_a_pod_counts_from_when_it_got_its_card_until_it_ended() -> None:
    began = replace(HELD, from_ms=T + 20_000)
    assert entries(moment(T), moment(T + MINUTE, began))[POD].sample.seen == 40_000
    ended = replace(HELD, until_ms=T + 15_000)
    assert entries(moment(T, HELD), moment(T + MINUTE, ended))[POD].sample.seen == 15_000
    assert POD not in entries(moment(T + MINUTE, ended), moment(T + 2 * MINUTE, ended))
    vanished = entries(moment(T, HELD), moment(T + MINUTE))[POD].sample
    assert (vanished.seen, vanished.told) == (30_000, 0)


def test_idle_is_what_was_given_while_no_kernel_ran() -> None:
    found = entries(moment(T, HELD), moment(T + MINUTE, HELD, use=use(0, 90)))
    assert found[POD].sample.idle == 12_000
    assert found[POD].active_s == (T + MINUTE) // 1000 - 90
    just_now = entries(moment(T, HELD), moment(T + MINUTE, HELD, use=use(0, 10)))
    assert just_now[POD].sample.idle == 0  # less than one percent, but something ran


def test_an_agent_that_has_just_started_knows_of_no_activity() -> None:
    started_s = (T + MINUTE) / 1000 - 30
    found = entries(moment(T, HELD), moment(T + MINUTE, HELD, use=use(0, 30, started_s)))
    assert found[POD].active_s is None


def test_an_agent_that_has_just_started_tells_of_its_own_time_only() -> None:
    """Otherwise each restart of an agent would end the idle time of all its pods."""
    started_s = (T + MINUTE) / 1000 - 30
    found = entries(moment(T, HELD), moment(T + MINUTE, HELD, use=use(0, 30, started_s)))
    sample = found[POD].sample
    assert (sample.given, sample.told, sample.known, sample.idle) == (12_000, 6_000, 6_000, 6_000)
    assert sample.memory_used == 27_000
    # It has seen a kernel: that counts for all of the time.
    worked = entries(moment(T, HELD), moment(T + MINUTE, HELD, use=use(0, 10, started_s)))
    assert (worked[POD].sample.told, worked[POD].sample.idle) == (12_000, 0)


def test_time_that_goes_back_counts_nothing() -> None:
    assert entries(moment(T + MINUTE, HELD), moment(T, HELD)) == {}


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(1, 15), st.booleans(), st.integers(-MINUTE, MINUTE)), max_size=8)
)
def test_all_kinds_agree_on_what_was_given(pods: list[tuple[int, bool, int]]) -> None:
    made = [
        replace(
            HELD,
            uid=f"u{n}",
            pod=f"p{n}",
            namespace=f"ns{n % 3}",
            user=("ann", "")[n % 2],
            shares=(replace(SHARE, units=units),),
            from_ms=T + began,
        )
        for n, (units, _, began) in enumerate(pods)
    ]
    stays = [held for held, (_, stays, _) in zip(made, pods, strict=True) if stays]
    found = entries(moment(T, *made), moment(T + MINUTE, *stays))
    for field in ("given", "memory_given", "idle"):
        sums: dict[Kind, int] = dict.fromkeys(Kind, 0)
        for key, entry in found.items():
            sums[key.kind] += getattr(entry.sample, field)
        assert len(set(sums.values())) == 1, (field, sums)


def test_a_deployment_is_named_for_its_replica_set() -> None:
    owner = {"controller": True, "kind": "ReplicaSet", "name": "web-5d4f"}
    metadata = {"name": "web-5d4f-x", "ownerReferences": [owner], "labels": {}}
    assert workload_of({"metadata": metadata}) == "ReplicaSet/web-5d4f"
    metadata["labels"] = {"pod-template-hash": "5d4f"}
    assert workload_of({"metadata": metadata}) == "Deployment/web"
    assert workload_of({"metadata": {"name": "alone"}}) == "Pod/alone"


def test_a_user_is_named_by_label_or_annotation() -> None:
    assert user_of({"labels": {"gpupool.io/user": "ann"}}) == "ann"
    assert user_of({"annotations": {"hub.jupyter.org/username": "bob"}}) == "bob"
    assert user_of({}) == ""
