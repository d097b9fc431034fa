"""What containers do with their parts of cards, sample by sample."""

from hypothesis import given as examples
from hypothesis import strategies as st

from gpupool.agent.usage import (
    LONGEST_GAP_S,
    Given,
    KnownPod,
    Part,
    Sample,
    Track,
    Work,
    container_uses,
    known_pod,
    next_tracks,
    parts_given,
    sm_percent,
    work_of_parts,
)
from gpupool.contract.allocation import allocation_text
from gpupool.contract.names import ANNOTATION_ALLOCATION
from gpupool.core.gpu import (
    Allocation,
    CardShare,
    ContainerGpus,
    Inventory,
    Isolation,
    Wall,
)
from gpupool.core.readings import CardReading, ContainerUse
from gpupool.hardware.driver import Loads, ProgramLoad, ProgramUse, Uses
from kubeclient.objects import Obj

A, B = "GPU-a", "GPU-b"
MAIN = Part("u", "main", A)


def share(uuid: str = A, mib: int = 3000) -> CardShare:
    return CardShare(uuid, 0, 3, mib, 15)


def pod(
    name: str = "p",
    uid: str = "u",
    ids: dict[str, str] | None = None,
    *gpus: ContainerGpus,
) -> KnownPod:
    """`ids`: of containers -> their names."""
    return KnownPod("ns", name, uid, ids or {}, gpus)


def limited(container: str = "main", *shares: CardShare) -> ContainerGpus:
    return ContainerGpus(container, shares or (share(),), Isolation.LIMIT)


def sample(
    programs: list[tuple[int, str, int]],
    loads: list[tuple[int, str, int]] | None = None,
    now_s: float = 100.0,
    cards: tuple[CardReading, ...] = (CardReading(A, power_mw=200_000),),
) -> Sample:
    """`loads` None: the driver does not tell them."""
    return Sample(
        cards,
        Uses(tuple(ProgramUse(*each) for each in programs), frozenset({A, B})),
        Loads(
            tuple(ProgramLoad(*each) for each in loads or ()),
            frozenset() if loads is None else frozenset({A, B}),
        ),
        now_s,
        1e9 + now_s,
    )


def work_in(
    taken: Sample, pods: list[KnownPod], owners: dict[int, str], containers: dict[int, str]
) -> dict[Part, Work]:
    given = parts_given(pods, Inventory())
    return work_of_parts(
        taken, pods, given, lambda pid: owners.get(pid, ""), lambda pid: containers.get(pid, "")
    )


def test_memory_and_load_are_summed_by_container_and_card() -> None:
    pods = [pod("p", "u", {"id1": "main", "id3": "side"}), pod("q", "v", {"id4": "main"})]
    taken = sample(
        [(1, A, 100), (2, A, 11), (1, B, 10), (3, A, 30), (4, A, 40), (9, A, 90)],
        [(1, A, 20), (2, A, 5), (9, A, 70)],
    )
    owners = {1: "u", 2: "id1", 3: "u", 4: "v"}
    containers = {1: "id1", 2: "id1", 3: "id3", 4: "id4"}
    assert work_in(taken, pods, owners, containers) == {
        Part("u", "main", A): Work(111, 25),
        Part("u", "main", B): Work(10, 0),
        Part("u", "side", A): Work(30, 0),
        Part("v", "main", A): Work(40, 0),
    }


def test_a_container_is_looked_for_in_its_own_pod_only() -> None:
    pods = [pod("p", "u", {"id1": "main"}), pod("q", "v", {"id7": "main"})]
    # The cgroup of the process names pod p and the container of pod q.
    found = work_in(sample([(7, A, 5)]), pods, {7: "u"}, {7: "id7"})
    assert found == {Part("u", "", A): Work(5)}


def test_an_unknown_container_is_the_only_one_that_has_the_card() -> None:
    one = [pod("p", "u", {}, limited("main"), limited("side", share(B)))]
    assert work_in(sample([(7, A, 5)]), one, {7: "u"}, {}) == {MAIN: Work(5)}
    two = [pod("p", "u", {}, limited("main"), limited("side"))]
    assert work_in(sample([(7, A, 5)]), two, {7: "u"}, {}) == {Part("u", "", A): Work(5)}


def test_what_a_pod_was_given_says_its_limit_and_what_holds_it() -> None:
    whole = ContainerGpus("w", (share(B, 16130),), Isolation.WHOLE)
    free = ContainerGpus("f", (share(),), Isolation.NONE)
    inventory = Inventory(wall=Wall.DRIVER, other_walls=(("v", Wall.LIMITER),))
    pods = [pod("p", "u", {}, limited("main"), whole), pod("q", "v", {}, limited("main"), free)]
    assert parts_given(pods, inventory) == {
        MAIN: Given(3000, 3000, Wall.DRIVER),
        Part("u", "w", B): Given(16130, None, None),
        Part("v", "main", A): Given(3000, 3000, Wall.LIMITER),
        Part("v", "f", A): Given(3000, None, Wall.NONE),
    }


def stored(phase: str, init: Obj) -> Obj:
    allocation = Allocation((limited("main"), limited("first")))
    annotations = {ANNOTATION_ALLOCATION: allocation_text(allocation)}
    return {
        "metadata": {"namespace": "ns", "name": "p", "uid": "u", "annotations": annotations},
        "status": {"phase": phase, "initContainerStatuses": [{"name": "first", "state": init}]},
    }


def test_pods_and_init_containers_that_have_ended_hold_nothing() -> None:
    def names(phase: str, init: Obj) -> list[str]:
        return [each.container for each in known_pod(stored(phase, init)).gpus]

    assert names("Pending", {"running": {}}) == ["main", "first"]
    assert names("Running", {"terminated": {}}) == ["main"]
    assert names("Succeeded", {"terminated": {}}) == []
    assert names("Failed", {}) == []


def test_idle_time_counts_from_the_last_kernel() -> None:
    tracks: dict[Part, Track] = {}
    seen = []
    for now_s, percent in ((100.0, 0), (105.0, 30), (110.0, 0), (115.0, 0)):
        taken = sample([(1, A, 10)], [(1, A, percent)], now_s)
        tracks = next_tracks(tracks, taken, {MAIN: Work(10, percent)})
        seen.append(now_s - tracks[MAIN].busy_s)
    assert seen == [0, 0, 5, 10]
    assert tracks[MAIN].watched_since_s == 1e9 + 100


def test_a_container_without_a_process_is_idle() -> None:
    taken = sample([], [], 150.0)
    track = Track(1.0, 70, 100.0, 145.0)
    assert next_tracks({MAIN: track}, taken, {MAIN: Work()})[MAIN] == Track(1.0, 70, 100.0, 150.0)


def test_after_a_long_time_without_a_sample_a_container_is_watched_anew() -> None:
    before = {MAIN: Track(1.0, 70, 100.0, 100.0)}
    for late_s, track in (
        (0.0, Track(1.0, 70, 100.0, 100.0 + LONGEST_GAP_S)),
        (1.0, Track(1e9 + 101 + LONGEST_GAP_S, 5, 101 + LONGEST_GAP_S, 101 + LONGEST_GAP_S)),
    ):
        taken = sample([(1, A, 5)], [], 100.0 + LONGEST_GAP_S + late_s)
        assert next_tracks(before, taken, {MAIN: Work(5)}) == {MAIN: track}


def test_a_card_that_cannot_be_read_neither_ends_nor_adds_to_idle_time() -> None:
    taken = sample([], None, 120.0)
    [track] = next_tracks({MAIN: Track(1.0, 70, 100.0, 115.0)}, taken, {MAIN: None}).values()
    # Kernels may have run: it counts as busy until a sample says otherwise.
    assert track == Track(1.0, 70, 120.0, 115.0)
    assert next_tracks({}, taken, {MAIN: None}) == {}


def test_without_loads_of_processes_the_card_tells_what_it_can() -> None:
    other = Part("v", "main", A)

    def told(card_percent: int, *programs: tuple[int, str, int]) -> int | None:
        work: dict[Part, Work | None] = {MAIN: Work(0)}
        for pid, _, used in programs:
            if pid < 9:
                work[MAIN if pid == 1 else other] = Work(used)
        taken = sample(list(programs), None, cards=(CardReading(A, sm_percent=card_percent),))
        return sm_percent(MAIN, taken, work)

    assert told(0, (1, A, 5), (2, A, 5)) == 0  # nobody computes
    assert told(40, (1, A, 5)) == 40  # only we can
    assert told(40, (1, A, 5), (2, A, 5)) is None
    assert told(40, (1, A, 5), (9, A, 5)) is None  # 9: of no pod
    assert told(40, (2, A, 5)) == 0  # we have no process


def test_power_is_divided_by_load() -> None:
    pods = {"u": pod(), "v": pod("q", "v")}
    other = Part("v", "main", A)
    work: dict[Part, Work | None] = {other: Work(5, 10), MAIN: Work(7, 30)}
    taken = sample([], [(1, A, 30), (2, A, 10), (3, A, 10)])
    tracks = {MAIN: Track(1.0, 8, 90.0, 100.0)}
    given = {MAIN: Given(3000, 3000, Wall.DRIVER)}
    assert container_uses(taken.cards[0], taken, pods, given, work, tracks) == (
        ContainerUse("ns", "p", "main", 7, "u", 3000, 3000, Wall.DRIVER, 8, 30, 10.0, 120_000, 1.0),
        ContainerUse("ns", "q", "main", 5, "v", sm_percent=10, power_mw=40_000),
    )


steps = st.lists(
    st.tuples(
        st.integers(1, 200),  # seconds since the sample before
        st.none() | st.tuples(st.integers(0, 16000), st.integers(0, 100)),
    ),
    min_size=1,
)


@examples(steps)
def test_peak_and_idle_time_are_never_more_than_was_seen(
    taken: list[tuple[int, tuple[int, int] | None]],
) -> None:
    tracks: dict[Part, Track] = {}
    now_s, history = 0.0, list[tuple[float, int, int]]()
    for pause_s, seen in taken:
        now_s += pause_s
        work: dict[Part, Work | None] = {MAIN: None if seen is None else Work(*seen)}
        loads = None if seen is None else [(1, A, seen[1])]
        tracks = next_tracks(tracks, sample([], loads, now_s), work)
        if seen is not None:
            history.append((now_s, *seen))
        if MAIN not in tracks:
            continue
        track = tracks[MAIN]
        since_s = track.watched_since_s - 1e9
        watched = [each for each in history if each[0] >= since_s]
        assert track.peak_mib == max(used for _, used, _ in watched)
        # Since the last kernel there are good samples, with no long gap between them.
        quiet = [at_s for at_s, _, percent in watched if at_s > track.busy_s]
        assert all(percent == 0 for at_s, _, percent in watched if at_s > track.busy_s)
        assert len(quiet) == 0 or quiet[-1] - quiet[0] <= now_s - track.busy_s
