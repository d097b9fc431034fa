"""Advice: only where something is known, about what is there, with a command that works."""

import shlex
from dataclasses import replace

import pytest

from gpupool.core.gpu import CardShare
from gpupool.history.advice import Advice, advices
from gpupool.history.facts import Held
from gpupool.history.samples import Sample
from gpupool.history.series import Kind, Series

HOUR = 3_600_000
SAMPLE = Sample(seen=10 * HOUR, given=8 * HOUR, told=8 * HOUR, known=8 * HOUR, peak=3100)
SHARE = CardShare("GPU-a", 0, 12, 12288, 15)
HELD = Held(
    "research",
    "trainer-x",
    "main",
    "u1",
    "Deployment/trainer",
    "ann",
    "n1",
    (SHARE,),
    0,
    12,
    1000,
    None,
    can_resize=True,
)


def series(held: Held) -> Series:
    name = f"{held.namespace}/{held.pod}/{held.container}"
    return Series(Kind.CONTAINER, name, 0, 36_000, None, {"workload": held.workload})


def advised(*pods: tuple[Held, Sample], now: list[Held] | None = None) -> list[Advice]:
    workloads = {f"{held.namespace}/{held.workload}": sample for held, sample in pods}
    there = [held for held, _ in pods] if now is None else now
    return advices([(series(held), sample) for held, sample in pods], workloads, there)


def test_it_names_what_would_do_and_the_command() -> None:
    [advice] = advised((HELD, SAMPLE))
    assert advice.words == "asks 12.0 GiB (12 units), peak 3.0 GiB in 10 h: 4 would do"
    assert advice.command == (
        "kubectl -n research set resources deployment/trainer -c main "
        "--requests=aliyun.com/gpu-mem=4 --limits=aliyun.com/gpu-mem=4"
    )


RESIZE = "gpupool resize trainer-x -n research -c main --gpu-mem 4"


@pytest.mark.parametrize(
    ("held", "command"),
    [
        (replace(HELD, workload="Pod/trainer-x"), RESIZE),
        (replace(HELD, workload="Job/once"), RESIZE),  # no template of a Job can be changed
        (replace(HELD, workload="PyTorchJob/once"), RESIZE),
        (replace(HELD, in_template=False), RESIZE),  # it asks in the words of another system
        (replace(HELD, workload="Pod/trainer-x", can_resize=False), None),
        (replace(HELD, workload="Job/once", can_resize=False), None),
    ],
)
def test_a_command_that_would_be_refused_is_not_given(held: Held, command: str | None) -> None:
    [advice] = advised((held, SAMPLE))
    assert advice.command == command


def test_nobody_puts_words_of_his_own_into_a_command_that_others_paste() -> None:
    """Nothing checks the owner that a pod names: it may be any text."""
    for workload in ("Deployment/x; rm -rf ~ #$(evil)", "Job; rm -rf ~/x"):
        [advice] = advised((replace(HELD, workload=workload), SAMPLE))
        assert advice.command is not None
        assert not {"rm", ";", "rm;"} & set(shlex.split(advice.command))
    [advice] = advised((replace(HELD, workload="Deployment/x; rm -rf ~ #$(evil)"), SAMPLE))
    assert "'deployment/x; rm -rf ~ #$(evil)'" in str(advice.command)


@pytest.mark.parametrize(
    "sample",
    [
        pytest.param(SAMPLE._replace(known=2 * HOUR), id="too little is known"),
        pytest.param(SAMPLE._replace(seen=180_000), id="it ran for three minutes only"),
        pytest.param(SAMPLE._replace(peak=10_500), id="it needs what it has"),
        pytest.param(SAMPLE._replace(peak=0), id="it has never used the card"),
    ],
)
def test_there_is_none_without_a_reason(sample: Sample) -> None:
    assert advised((HELD, sample)) == []


def test_there_is_none_for_what_is_gone() -> None:
    assert advised((HELD, SAMPLE), now=[]) == []
    assert advised((HELD, SAMPLE), now=[replace(HELD, workload="Deployment/other")]) == []


def test_there_is_none_for_whole_cards() -> None:
    assert advised((replace(HELD, asked_cards=1, asked_units=0), SAMPLE)) == []


def test_who_has_followed_it_is_not_told_again() -> None:
    """A resize changes the share, and not what the pod asks for."""
    resized = replace(HELD, shares=(replace(SHARE, units=4, memory_mib=4096),))
    assert advised((HELD, SAMPLE), now=[resized]) == []
    # A new pod of the Deployment, while the old one is still there.
    rolled = replace(resized, pod="trainer-y", uid="u2", asked_units=4, from_ms=2000)
    assert advised((HELD, SAMPLE), (rolled, SAMPLE), now=[HELD, rolled]) == []


def test_it_follows_the_highest_peak_of_all_pods_of_a_workload() -> None:
    gone = replace(HELD, pod="trainer-y", uid="u2")
    [advice] = advised((HELD, SAMPLE), (gone, SAMPLE._replace(peak=6000)), now=[HELD])
    assert (advice.peak_mib, advice.units) == (6000, 8)


def test_many_short_pods_of_a_workload_are_known_as_long_as_the_workload() -> None:
    short = SAMPLE._replace(seen=HOUR // 2, given=HOUR // 4, known=HOUR // 4)
    pods = [(replace(HELD, pod=f"p{n}", uid=f"u{n}"), short) for n in range(30)]
    found = advices(
        [(series(held), sample) for held, sample in pods],
        {"research/Deployment/trainer": Sample(seen=15 * HOUR)},
        [HELD],
    )
    assert [(each.units, round(each.days * 24)) for each in found] == [(4, 15)]


def test_a_share_of_several_cards_is_advised_as_their_sum() -> None:
    two = (SHARE, replace(SHARE, uuid="GPU-b", index=1))
    [advice] = advised((replace(HELD, shares=two, asked_units=24), SAMPLE))
    assert (advice.units_now, advice.units) == (24, 8)
