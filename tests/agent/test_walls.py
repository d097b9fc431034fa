"""The driver's memory limits on containers: set, verified, cleared, repaired."""

import os
import shutil
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.agent.leaves import CgroupLeaves, Leaf
from gpupool.agent.wall_plan import shares_of, walls
from gpupool.agent.walls import PATIENCE_S, WallRefused, Walls
from gpupool.contract.allocation import allocation_annotations
from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Isolation, Wall
from gpupool.hardware.memory_limits import (
    NO_LIMITS,
    Found,
    LimitsRefused,
    LimitsUnsupported,
    MemoryLimits,
)
from kubeclient.objects import Obj

MIB = 1 << 20
CARDS = ("GPU-a", "GPU-b")
SHARE = MemoryLimits(3226 * MIB, 3226 * MIB)


class FakeDriver:
    """Limits as the backend dmem keeps them: in the cgroups, and each soft limit is added to all
    ancestors, up to the root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.limits: dict[tuple[str, str], MemoryLimits] = {}
        self.calls: list[tuple[str, str, MemoryLimits]] = []
        self.broken = ""  # why setting fails
        self.forgets = False  # setting "succeeds" and does nothing

    def set(self, cgroup: str, uuid: str, limits: MemoryLimits) -> None:
        self.calls.append((cgroup, uuid, limits))
        if self.broken:
            raise LimitsRefused(self.broken)
        if not os.path.isdir(cgroup):
            raise LimitsRefused(f"{cgroup}: Not Found")
        if self.forgets:
            return
        delta = limits.soft - self.get(cgroup, uuid).limits.soft
        self.limits[cgroup, uuid] = limits
        above = Path(cgroup).parent
        while above != self.root:
            before = self.get(str(above), uuid).limits
            self.limits[str(above), uuid] = MemoryLimits(max(before.soft + delta, 0), before.hard)
            above = above.parent

    def get(self, cgroup: str, uuid: str) -> Found:
        if not os.path.isdir(cgroup):
            raise LimitsRefused(f"{cgroup}: Not Found")
        return Found(self.limits.get((cgroup, uuid), NO_LIMITS))

    def removed(self, cgroup: Path) -> None:
        shutil.rmtree(cgroup)
        self.limits = {key: each for key, each in self.limits.items() if os.path.isdir(key[0])}


UID = "0f6d2a3e-1b2c-4d5e-8f90-{:012x}"


def uid_of(number: int) -> str:
    return UID.format(number)


def id_of(number: int) -> str:
    return f"{number:064x}"


class Node:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.top = root / "kubepods.slice"
        self.top.mkdir()
        self.driver = FakeDriver(root)
        self.walls = Walls(self.driver, CgroupLeaves(root))

    def leaf(self, pod: int, container: int) -> Path:
        uid = uid_of(pod).replace("-", "_")
        name = f"kubepods-burstable-pod{uid}.slice/cri-containerd-{id_of(container)}.scope"
        path = self.top / "kubepods-burstable.slice" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def limits(self, path: Path, card: str = CARDS[0]) -> MemoryLimits:
        return self.driver.get(str(path), card).limits

    def sweep(self, pods: list[Obj], now_s: float = 0) -> dict[str, set[str]]:
        return self.walls.sweep(pods, CARDS, now_s).held


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def pod(number: int, containers: dict[int, str], mib: int = 3226, **state: object) -> Obj:
    """`containers`: ids -> names. Each has a share of the first card."""
    allocation = Allocation(
        tuple(
            ContainerGpus(name, (CardShare(CARDS[0], 0, 3, mib, 15),), Isolation.LIMIT, True)
            for name in containers.values()
        )
    )
    statuses = [
        {
            "name": name,
            "containerID": f"containerd://{id_of(each)}",
            "state": state or {"running": {}},
        }
        for each, name in containers.items()
    ]
    return {
        "metadata": {
            "name": f"p{number}",
            "namespace": "n",
            "uid": uid_of(number),
            "annotations": allocation_annotations(allocation, now_ns=0),
        },
        "spec": {"containers": [{"name": name} for name in containers.values()]},
        "status": {"phase": "Running", "containerStatuses": statuses},
    }


def test_a_limit_is_set_before_the_start_and_read_back(node: Node) -> None:
    leaf = node.leaf(1, 1)
    node.walls.set_before_start(str(leaf), {CARDS[0]: 3226})
    assert node.limits(leaf) == SHARE
    assert node.limits(leaf, CARDS[1]) == NO_LIMITS


def test_a_container_is_held_and_released_by_its_id(node: Node) -> None:
    leaf = node.leaf(1, 1)
    node.walls.hold(id_of(1), {CARDS[0]: 3226})
    assert node.limits(leaf) == SHARE
    node.walls.release(id_of(1), [CARDS[0]])
    assert node.limits(leaf) == NO_LIMITS
    with pytest.raises(WallRefused, match="has no cgroup of a pod"):
        node.walls.hold(id_of(2), {CARDS[0]: 3226})


def test_a_driver_that_does_not_hold_what_was_set_is_refused(node: Node) -> None:
    node.driver.forgets = True
    with pytest.raises(WallRefused, match=r"wanted a limit of 3226 MiB on card GPU-a, found none"):
        node.walls.set_before_start(str(node.leaf(1, 1)), {CARDS[0]: 3226})


def test_what_was_set_of_a_refused_container_is_taken_back(node: Node) -> None:
    leaf = node.leaf(1, 1)
    real = node.driver.set

    def failing(cgroup: str, uuid: str, limits: MemoryLimits) -> None:
        if uuid == CARDS[1]:
            raise LimitsRefused("no")
        real(cgroup, uuid, limits)

    node.driver.set = failing  # type: ignore[method-assign]
    with pytest.raises(WallRefused, match="no"):
        node.walls.set_before_start(str(leaf), {CARDS[0]: 3226, CARDS[1]: 3226})
    assert node.limits(leaf) == NO_LIMITS


def test_a_cleared_container_leaves_no_reservation_behind(node: Node) -> None:
    leaf = node.leaf(1, 1)
    node.walls.set_before_start(str(leaf), {CARDS[0]: 3226})
    assert node.limits(node.top).soft == 3226 * MIB
    node.walls.cleared(str(leaf), CARDS)
    assert node.limits(leaf) == NO_LIMITS
    assert node.limits(node.top).soft == 0
    node.walls.cleared(str(leaf / "gone"), CARDS)


def test_whether_the_driver_has_limits_is_found_by_setting_one(node: Node) -> None:
    assert node.walls.work(CARDS[0])
    assert node.driver.limits.keys() == {(node.driver.calls[0][0], CARDS[0])}
    node.driver.forgets = True
    assert not node.walls.work(CARDS[0])
    assert [each.name for each in node.root.iterdir()] == ["kubepods.slice"]

    class OldDriver(FakeDriver):
        def set(self, cgroup: str, uuid: str, limits: MemoryLimits) -> None:
            raise LimitsUnsupported("old")

    assert not Walls(OldDriver(node.root), CgroupLeaves(node.root)).work(CARDS[0])


def test_a_sweep_sets_what_nobody_has_set_and_changes_nothing_twice(node: Node) -> None:
    leaf = node.leaf(1, 1)
    assert node.sweep([pod(1, {1: "main"})]) == {uid_of(1): {id_of(1)}}
    assert node.limits(leaf) == SHARE
    node.driver.calls.clear()
    # An agent that starts again finds everything as it should be.
    node.walls = Walls(node.driver, CgroupLeaves(node.root))
    assert node.sweep([pod(1, {1: "main"})]) == {uid_of(1): {id_of(1)}}
    assert not node.driver.calls


def test_a_resized_share_is_set_by_the_next_sweep_larger_or_smaller(node: Node) -> None:
    leaf = node.leaf(1, 1)
    for mib in (3226, 6452, 1075):
        node.sweep([pod(1, {1: "main"}, mib)])
        assert node.limits(leaf) == MemoryLimits(mib * MIB, mib * MIB)
        assert node.limits(node.top).soft == mib * MIB


def test_a_container_that_the_api_does_not_show_yet_keeps_its_limit(node: Node) -> None:
    leaf = node.leaf(1, 7)
    node.walls.set_before_start(str(leaf), {CARDS[0]: 3226})
    for now_s in (0, PATIENCE_S, 2 * PATIENCE_S):
        node.sweep([pod(1, {1: "main"})], now_s)
    assert node.limits(leaf) == SHARE


def test_a_limit_of_a_pod_that_is_gone_is_cleared_after_a_while(node: Node) -> None:
    leaf = node.leaf(1, 1)
    node.sweep([pod(1, {1: "main"})])
    node.sweep([], 0)
    assert node.limits(leaf) == SHARE  # the agent may not have heard of the pod yet
    node.sweep([], PATIENCE_S)
    assert node.limits(leaf) == NO_LIMITS


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_limit_of_a_pod_that_has_ended_is_cleared(node: Node, phase: str) -> None:
    leaf = node.leaf(1, 1)
    ended = pod(1, {1: "main"})
    node.sweep([ended])
    ended["status"]["phase"] = phase
    node.sweep([ended], 0)
    node.sweep([ended], PATIENCE_S)
    assert node.limits(leaf) == NO_LIMITS


def test_the_container_before_a_restart_loses_its_limit(node: Node) -> None:
    before, after = node.leaf(1, 1), node.leaf(1, 2)
    node.sweep([pod(1, {1: "main"})])
    restarted = pod(1, {2: "main"})
    last = {"terminated": {"containerID": f"containerd://{id_of(1)}"}}
    restarted["status"]["containerStatuses"][0]["lastState"] = last
    node.sweep([restarted], 0)
    node.sweep([restarted], PATIENCE_S)
    assert (node.limits(before), node.limits(after)) == (NO_LIMITS, SHARE)


def test_a_reservation_that_leaked_is_repaired_on_every_level(node: Node) -> None:
    lost, kept = node.leaf(1, 1), node.leaf(2, 2)
    pods = [pod(1, {1: "main"}), pod(2, {2: "main"}, 1075)]
    node.sweep(pods)
    node.driver.removed(lost)  # nobody took its soft limit away before
    assert node.limits(node.top).soft == (3226 + 1075) * MIB
    node.sweep(pods[1:], 0)
    node.sweep(pods[1:], PATIENCE_S)
    for level in (node.top, node.top / "kubepods-burstable.slice", kept.parent):
        assert node.limits(level).soft == 1075 * MIB
    assert node.limits(lost.parent).soft == 0


def test_a_whole_pod_that_was_removed_leaks_nothing(node: Node) -> None:
    lost = node.leaf(1, 1)
    node.sweep([pod(1, {1: "main"})])
    node.driver.removed(lost.parent)
    for now_s in (0, PATIENCE_S):
        node.sweep([], now_s)
    assert node.limits(node.top).soft == 0


def test_limits_of_other_cgroups_are_left_alone(node: Node) -> None:
    own = node.root / "mygroup"
    own.mkdir()
    node.driver.set(str(own), CARDS[0], MemoryLimits(5, 10))
    for now_s in (0, PATIENCE_S):
        node.sweep([], now_s)
    assert node.limits(own) == MemoryLimits(5, 10)


def test_one_container_that_the_driver_refuses_does_not_keep_others_from_their_walls(
    node: Node,
) -> None:
    bad, good = node.leaf(1, 1), node.leaf(2, 2)
    real = node.driver.set

    def failing(cgroup: str, uuid: str, limits: MemoryLimits) -> None:
        if cgroup == str(bad):
            raise LimitsRefused("this one not")
        real(cgroup, uuid, limits)

    node.driver.set = failing  # type: ignore[method-assign]
    found = node.walls.sweep([pod(1, {1: "a"}), pod(2, {2: "b"})], CARDS, 0)
    assert found.problems == {uid_of(1): "this one not"}
    assert found.held == {uid_of(2): {id_of(2)}}
    assert node.limits(good) == SHARE


def test_100_containers_at_once_are_all_held_and_leave_nothing(node: Node) -> None:
    leaves = [node.leaf(number, number) for number in range(100)]
    begin = threading.Barrier(10)

    def start(some: list[Path]) -> None:
        begin.wait()
        for leaf in some:
            node.walls.set_before_start(str(leaf), {CARDS[0]: 10, CARDS[1]: 10})

    threads = [threading.Thread(target=start, args=(leaves[i::10],)) for i in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert node.limits(node.top).soft == 100 * 10 * MIB
    pods = [pod(number, {number: "main"}, 10) for number in range(100)]
    assert len(node.sweep(pods)) == 100
    for leaf in leaves[:50]:
        node.walls.cleared(str(leaf), CARDS)
        node.driver.removed(leaf)
    for leaf in leaves[50:]:
        node.driver.removed(leaf)
    for now_s in (0, PATIENCE_S):
        node.sweep([], now_s)
    assert not any(each.soft for each in node.driver.limits.values())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("sckrw")), max_size=25))
def test_whatever_happens_reservations_agree_with_containers_in_the_end(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]]
) -> None:
    """Containers start, end, are killed with their cgroup, are resized; the agent sweeps."""
    node = Node(tmp_path_factory.mktemp("node"))
    running: dict[int, int] = {}
    now_s = 0.0
    for number, step in steps:
        leaf = node.leaf(number, number) if number in running or step == "s" else None
        if step == "s":
            running[number] = 100 * (number + 1)
            assert leaf is not None
            node.walls.set_before_start(str(leaf), {CARDS[0]: running[number]})
        elif step in "ck" and leaf is not None:
            if step == "c":
                node.walls.cleared(str(leaf), CARDS)
            node.driver.removed(leaf)
            del running[number]
        elif step == "r" and number in running:
            running[number] += 7
        else:
            now_s += PATIENCE_S
            node.sweep([pod(n, {n: "main"}, mib) for n, mib in running.items()], now_s)
    for _ in range(3):
        now_s += PATIENCE_S
        node.sweep([pod(n, {n: "main"}, mib) for n, mib in running.items()], now_s)
    assert node.limits(node.top).soft == sum(running.values()) * MIB


def test_pods_that_something_else_holds_are_named() -> None:
    one, two = pod(1, {1: "main"}), pod(2, {2: "main"})
    held = {uid_of(1): {id_of(1)}}
    assert walls([one, two], held, Wall.DRIVER) == {uid_of(2): Wall.LIMITER}
    assert walls([one, two], held, Wall.LIMITER) == {uid_of(1): Wall.DRIVER}
    # What has not started is not judged, nor what has ended.
    assert walls([pod(3, {3: "main"}, waiting={})], {}, Wall.DRIVER) == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("GPU-a 3226 0\nGPU-b 10 50\n", {"GPU-a": 3226, "GPU-b": 10}),
        ("unlimited\n", {}),
        ("", {}),
        ("GPU-a ten 0\nGPU-b\n\n", {}),
        ("GPU-a ١ 0\n", {}),
    ],
)
def test_the_wall_follows_the_limit_file(text: str, found: dict[str, int]) -> None:
    assert shares_of(text) == found


def test_cgroups_of_containers_are_found_however_they_are_named(tmp_path: Path) -> None:
    names = (
        f"kubepods/burstable/pod{uid_of(1)}/{id_of(1)}",
        f"kubepods/pod{uid_of(2)}/{id_of(2)}",
        f"kubepods.slice/kubepods-pod{uid_of(3).replace('-', '_')}.slice/crio-{id_of(3)}.scope",
        f"kubepods/pod{uid_of(4)}/{id_of(4)}/made-by-the-container/{id_of(5)}",
        f"system.slice/pod{uid_of(6)}/{id_of(6)}",
    )
    for name in names:
        (tmp_path / name).mkdir(parents=True)
    found = CgroupLeaves(tmp_path).all()
    expected = [
        Leaf(uid_of(number), id_of(number), str(tmp_path / names[number - 1]))
        for number in (1, 2, 3)
    ]
    fourth = (tmp_path / names[3]).parent.parent
    assert sorted(found) == [*expected, Leaf(uid_of(4), id_of(4), str(fourth))]
