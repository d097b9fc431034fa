"""The driver's own memory limits, as NVIDIA documents them since driver 615."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gpupool.hardware.memory_limits import (
    NO_LIMITS,
    Found,
    LimitsRefused,
    LimitsUnsupported,
    MemoryLimits,
)
from gpupool.hardware.simdriver import NodeFiles, read_cards
from gpupool.hardware.simulated_limits import SimulatedLimits
from tests.native.simulated import MIB, holding, is_able_to_unshare, make_node, python
from tests.native.walled import (
    SHARE_MIB,
    TAKES_ALL,
    Place,
    cgroup_place,
    container_place,
    limit,
    walled_node,
)

CARD_MIB = 16130
UNLIMITED = 2**64 - 1

# Calls NVML: set PATH SOFT HARD, get PATH; prints the results.
NVML = """
import ctypes, json, sys
nvml = ctypes.CDLL("libnvidia-ml.so.1")
class Limits(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("soft", ctypes.c_uint64), ("hard", ctypes.c_uint64),
                ("used", ctypes.c_uint64)]
assert nvml.nvmlInit_v2() == 0
card = ctypes.c_void_p()
nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(card))
answers = []
for call, path, *numbers in json.loads(CALLS):
    limits = Limits(path.encode() if path else None, *numbers)
    name = "nvmlDeviceSetMemoryLimits_v1" if call == "set" else "nvmlDeviceGetMemoryLimits_v1"
    result = getattr(nvml, name)(card, ctypes.byref(limits))
    shown = [limits.soft, limits.hard, limits.used] if call == "get" and not result else []
    answers.append([result, *shown])
print(json.dumps(answers))
"""


def nvml(node: NodeFiles, *calls: object) -> list[list[int]]:
    script = NVML.replace("CALLS", repr(json.dumps(calls)))
    answers: list[list[int]] = json.loads(python(node, script))
    return answers


@pytest.fixture
def node(tmp_path: Path) -> NodeFiles:
    return walled_node(tmp_path / "node")


@pytest.fixture
def cgroup(node: NodeFiles) -> Iterator[Place]:
    with cgroup_place(node, "pod", "leaf") as place:
        yield place


@pytest.fixture(params=["container", "cgroup"])
def place(request: pytest.FixtureRequest, node: NodeFiles) -> Iterator[Place]:
    with ExitStack() as stack:
        if request.param == "container":
            yield container_place(node)
        else:
            yield stack.enter_context(cgroup_place(node, "pod", "leaf"))


def set_limit(place: Place, soft_mib: int, hard_mib: int) -> None:
    if place.state is not None:
        limit(place, soft_mib, hard_mib)
        return
    call = ["set", str(place.directory), soft_mib * MIB, hard_mib * MIB]
    assert nvml(place.node, call) == [[0]]


def test_a_program_gets_its_hard_limit_and_sees_it(place: Place) -> None:
    assert place.python(TAKES_ALL) == f"{CARD_MIB} {CARD_MIB} {CARD_MIB}\n"
    set_limit(place, SHARE_MIB, SHARE_MIB)
    assert place.python(TAKES_ALL) == f"{SHARE_MIB} {SHARE_MIB} {SHARE_MIB}\n"


def test_contexts_count_for_the_limit(tmp_path: Path) -> None:
    place = container_place(walled_node(tmp_path / "contexts", context_mib=300))
    set_limit(place, SHARE_MIB, SHARE_MIB)
    left = SHARE_MIB - 300
    assert place.python(TAKES_ALL) == f"{SHARE_MIB} {left} {left}\n"
    set_limit(place, 0, 299)
    assert place.run("python3", "-c", TAKES_ALL).stderr == "no context: 2\n"


def test_managed_memory_does_not_count_for_the_limit(node: NodeFiles) -> None:
    place = container_place(node)
    set_limit(place, SHARE_MIB, SHARE_MIB)
    managed = TAKES_ALL.replace("cuMemAlloc_v2(", "cuMemAllocManaged(").replace(
        "<< 20))", "<< 20), 1)"
    )
    # It is memory of the card, though, as far as the simulation goes.
    assert place.python(managed) == f"{SHARE_MIB} {SHARE_MIB} {CARD_MIB}\n"


@pytest.mark.parametrize(
    ("call", "given"),
    {
        "cuMemAllocAsync": "ctypes.c_size_t({size}), None",
        "cuMemAllocPitch_v2": "ctypes.byref(free), ctypes.c_size_t({size}), ctypes.c_size_t(1), 4",
        "cuMemAllocManaged": "ctypes.c_size_t({size}), 1",
    }.items(),
)
def test_all_calls_that_take_memory_of_the_card_are_held(
    node: NodeFiles, call: str, given: str
) -> None:
    place = container_place(node)
    set_limit(place, 0, 100)
    head = TAKES_ALL.partition("taken, size")[0]
    one = "print(cuda.{}(ctypes.byref(pointer), {}))\n"
    sizes = (100 * MIB, 1)
    script = head + "".join(one.format(call, given.format(size=size)) for size in sizes)
    is_managed = call == "cuMemAllocManaged"
    assert place.python(script).split() == ["0", "0" if is_managed else "2"]


def test_memory_of_all_processes_of_a_cgroup_counts_together(place: Place) -> None:
    set_limit(place, 0, 1000)
    hold = TAKES_ALL.partition("taken, size")[0] + (
        "assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(600 << 20)) == 0\n"
        "print('held', flush=True)\ninput()\n"
    )
    first = place.start(hold)
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        assert place.python(TAKES_ALL) == "1000 400 400\n"
        # Killed, at whatever instruction: all its memory is back.
        first.kill()
        first.wait()
        assert place.python(TAKES_ALL) == "1000 1000 1000\n"
    finally:
        first.kill()
        first.communicate()


def test_only_the_limited_cgroup_is_limited(node: NodeFiles) -> None:
    limited, free = container_place(node, "a"), container_place(node, "b")
    set_limit(limited, 0, 1000)
    with holding(node, 0, 100):
        assert limited.python(TAKES_ALL) == "1000 1000 1000\n"
        left = CARD_MIB - 100
        assert free.python(TAKES_ALL) == f"{CARD_MIB} {left} {left}\n"


def test_a_limit_never_gives_more_than_the_card_has_left(node: NodeFiles) -> None:
    place = container_place(node)
    set_limit(place, 0, 1000)
    with holding(node, 0, CARD_MIB - 250):
        assert place.python(TAKES_ALL) == "1000 250 250\n"


def test_the_nearest_limited_ancestor_counts_and_is_not_shown(node: NodeFiles) -> None:
    with cgroup_place(node, "pod", "leaf") as leaf:
        pod = Place(node, leaf.directory.parent)
        set_limit(Place(node, pod.directory.parent), 0, 500)
        assert leaf.python(TAKES_ALL) == f"{CARD_MIB} {CARD_MIB} 500\n"
        # Limits do not nest: a nearer one counts, even if it is larger.
        set_limit(pod, 0, 700)
        assert leaf.python(TAKES_ALL) == f"{CARD_MIB} {CARD_MIB} 700\n"
        set_limit(leaf, 0, 600)
        assert leaf.python(TAKES_ALL) == "600 600 600\n"


def test_a_cgroup_namespace_hides_the_path_and_not_the_limit(cgroup: Place) -> None:
    set_limit(cgroup, 0, 600)
    # As container runtimes do it: the namespace begins at the cgroup, and shows its own hierarchy.
    shown = 'mount -t cgroup2 none /mnt && exec "$@"'
    inside = ("unshare", "-Cm", "sh", "-c", shown, "sh", "/usr/bin/python3", "-c", TAKES_ALL)
    done = cgroup.run(*inside)
    assert done.stdout == "600 600 600\n", done.stderr
    # Without such a mount, nobody knows the place: nothing of a limited card is given out.
    bare = ("unshare", "-Cm", "/usr/bin/python3", "-c", TAKES_ALL)
    assert "no context: 2\n" in cgroup.run(*bare).stderr


def test_nvml_reads_a_limit_with_what_is_used_of_it(cgroup: Place) -> None:
    path = str(cgroup.directory)
    hold = TAKES_ALL + "print('held', flush=True)\ninput()\n"
    set_limit(cgroup, 200, 300)
    child = cgroup.start(hold)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        assert child.stdout.readline() == "held\n"
        assert nvml(cgroup.node, ["get", path]) == [[0, 200 * MIB, 300 * MIB, 300 * MIB]]
    finally:
        child.kill()
        child.communicate()
    assert nvml(cgroup.node, ["get", path]) == [[0, 200 * MIB, 300 * MIB, 0]]


def test_a_cgroup_without_a_limit_is_not_supported_or_not_found(cgroup: Place) -> None:
    path = str(cgroup.directory)
    missing = f"{path}/missing"
    asked = nvml(cgroup.node, ["get", path], ["get", missing], ["set", missing, 0, 1])
    assert asked == [[3], [6], [6]]
    assert nvml(cgroup.node, ["set", "/usr", 0, 1], ["set", "", 0, 1]) == [[6], [2]]


def test_a_limit_is_cleared_by_zero_and_the_largest_number(cgroup: Place) -> None:
    path = str(cgroup.directory)
    assert nvml(
        cgroup.node,
        ["set", path, 5, 10],
        ["get", path],
        ["set", path, 0, UNLIMITED],
        ["get", path],
        ["set", path, 11, 10],
    ) == [[0], [0, 5, 10, 0], [0], [3], [2]]


def test_a_removed_cgroup_takes_its_limit_with_it(node: NodeFiles) -> None:
    with cgroup_place(node, "leaf") as place:
        path = str(place.directory)
        assert nvml(node, ["set", path, 0, 10], ["get", path]) == [[0], [0, 0, 10, 0]]
        place.directory.rmdir()
        place.directory.mkdir()
        assert nvml(node, ["get", path]) == [[3]]


def test_an_older_driver_has_no_limits(tmp_path: Path) -> None:
    node = make_node(tmp_path / "old")
    place = container_place(node)
    with pytest.raises(LimitsUnsupported, match=r"driver 550\.163\.01 has no memory limits"):
        limit(place, 0, 10)
    with cgroup_place(node, "leaf") as cgroup:
        path = str(cgroup.directory)
        assert nvml(node, ["set", path, 0, 10], ["get", path]) == [[3], [3]]


def test_only_root_of_the_machine_sets_limits(node: NodeFiles) -> None:
    if not is_able_to_unshare():
        pytest.skip("this machine lets nobody make namespaces")
    place = container_place(node)  # its processes are root in a namespace of their own
    path = str(place.directory)
    script = NVML.replace("CALLS", repr(json.dumps([["set", path, 0, 1], ["get", path]])))
    assert json.loads(place.python(script)) == [[4], [3]]


def test_nvml_shows_the_limit_in_its_newer_layout(place: Place) -> None:
    set_limit(place, 0, 1000)
    script = """
import pynvml as n
n.nvmlInit()
card = n.nvmlDeviceGetHandleByIndex(0)
for version in (None, n.nvmlMemory_v2):
    memory = n.nvmlDeviceGetMemoryInfo(card, version)
    print(memory.total >> 20, memory.used >> 20, memory.free >> 20)
"""
    with holding(place.node, 0, 100):
        # Not that of the others: their memory is none of the cgroup's.
        expected = f"{CARD_MIB} 100 {CARD_MIB - 100}\n1000 0 1000\n"
        assert place.python(script) == expected


def test_a_process_whose_place_is_not_known_gets_nothing_of_a_limited_card(node: NodeFiles) -> None:
    place = container_place(node)
    covered = 'mount -t tmpfs none /proc && exec "$@"'
    command = ("sh", "-c", covered, "sh", "/usr/bin/python3", "-c", TAKES_ALL)
    if place.run(*command).stdout != f"{CARD_MIB} {CARD_MIB} {CARD_MIB}\n":
        pytest.skip("this machine does not let a namespace cover /proc")
    set_limit(container_place(node, "b"), 0, 100)
    assert "no context: 2\n" in place.run(*command).stderr


def test_a_container_whose_link_was_removed_is_still_that_container(node: NodeFiles) -> None:
    place = container_place(node)
    set_limit(place, 0, 100)
    removing = 'rm "$0" && exec "$@"'
    link = place.directory / "state"
    done = place.run("sh", "-c", removing, str(link), "/usr/bin/python3", "-c", TAKES_ALL)
    assert done.stdout == "100 100 100\n", done.stderr


def test_python_sets_and_reads_what_the_driver_holds(node: NodeFiles) -> None:
    place = container_place(node)
    limits, cards = SimulatedLimits(node.state), read_cards(node)
    path = str(place.directory)
    limits.set(path, cards[1].uuid, MemoryLimits(1, 2))
    assert limits.get(path, cards[1].uuid) == Found(MemoryLimits(1, 2))
    assert limits.get(path, cards[0].uuid) == Found(NO_LIMITS)
    limits.set(path, cards[1].uuid, NO_LIMITS)
    assert limits.get(path, cards[1].uuid) == Found(NO_LIMITS)
    with pytest.raises(LimitsRefused, match="wanted the directory of a container"):
        limits.get("/sys/fs/cgroup", cards[0].uuid)
    with pytest.raises(LimitsRefused, match="there is no card GPU-x"):
        limits.get(path, "GPU-x")


def test_a_node_has_room_for_512_limited_containers(node: NodeFiles) -> None:
    limits, card = SimulatedLimits(node.state), read_cards(node)[0].uuid
    paths = [str(node.container("pod", str(number))) for number in range(513)]
    for path in paths[:512]:
        limits.set(path, card, MemoryLimits(0, 1))
    with pytest.raises(LimitsRefused, match="at most 512"):
        limits.set(paths[512], card, MemoryLimits(0, 1))
    limits.set(paths[7], card, NO_LIMITS)
    limits.set(paths[512], card, MemoryLimits(0, 1))
