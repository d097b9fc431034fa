"""The agent's walls on real cgroups, through the names of NVML. Needs root and cgroup v2.

Real: the cgroups (v2, with processes in them), what the kernel says of their members, NVML's calls.
Simulated: the driver behind NVML. The hierarchy need not have controllers.
"""

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpupool.hardware.simdriver import NodeFiles
from gpupool.hardware.simdriver_state import opened
from tests.native.simulated import environment
from tests.native.walled import TAKES_ALL, Place, cgroup_mount, walled_node

SRC = Path(__file__).parents[2] / "src"
# The agent's process, which obeys one line after another: its walls know only what they find.
AGENT = """
import json, sys
from pathlib import Path
import pynvml
from gpupool.agent.leaves import CgroupLeaves
from gpupool.agent.walls import Walls, WallRefused
from gpupool.hardware.nvml_limits import NvmlLimits

pynvml.nvmlInit()
cards = [pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(i)) for i in range(2)]
limits = NvmlLimits()
walls = Walls(limits, CgroupLeaves(Path(sys.argv[1])))
for line in sys.stdin:
    call, *given = json.loads(line)
    if call == "works":
        answer = walls.work(cards[0])
    elif call == "set":
        answer = walls.set_before_start(given[0], {cards[0]: given[1]})
    elif call == "cleared":
        answer = walls.cleared(given[0], cards)
    elif call == "get":
        found = limits.get(given[0], cards[0])
        answer = [found.limits.soft >> 20, found.limits.hard >> 20, found.used >> 20]
    elif call == "card":
        answer = cards[0]
    else:
        held = walls.sweep(given[0], cards, given[1]).held
        answer = {uid: sorted(ids) for uid, ids in held.items()}
    print(json.dumps(answer), flush=True)
"""
NONE = [0, (2**64 - 1) >> 20, 0]


class Agent:
    def __init__(self, node: NodeFiles, root: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", AGENT, str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**environment(node), "PYTHONPATH": str(SRC)},
        )

    def __call__(self, *call: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(call), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


class Kubelet:
    """The part of a node's hierarchy that a kubelet and a container runtime make."""

    def __init__(self, node: NodeFiles, root: Path) -> None:
        self.node, self.root = node, root

    def leaf(self, number: int) -> Place:
        path = self.root / "kubepods" / f"pod{self.uid(number)}" / self.id(number)
        path.mkdir(parents=True, exist_ok=True)
        return Place(self.node, path)

    def remove(self, number: int) -> None:
        path = self.leaf(number).directory
        path.rmdir()
        path.parent.rmdir()

    @staticmethod
    def uid(number: int) -> str:
        return f"0f6d2a3e-1b2c-4d5e-8f90-{number:012x}"

    @staticmethod
    def id(number: int) -> str:
        return f"{number:064x}"

    def pod(self, number: int, card: str, mib: int) -> dict[str, Any]:
        status = {"name": "c", "containerID": f"x://{self.id(number)}", "state": {"running": {}}}
        limits = {"limits.gpupool.io/c": f"{card} {mib} 0\n"}
        return {
            "metadata": {"uid": self.uid(number), "annotations": limits},
            "status": {"containerStatuses": [status]},
        }


@pytest.fixture
def node(tmp_path: Path) -> NodeFiles:
    return walled_node(tmp_path / "node")


@pytest.fixture
def kubelet(node: NodeFiles) -> Iterator[Kubelet]:
    root = cgroup_mount() / f"gpupool-test-{uuid.uuid4().hex[:12]}"
    root.mkdir()
    try:
        yield Kubelet(node, root)
    finally:
        for path, _, _ in os.walk(root, topdown=False):
            os.rmdir(path)


@pytest.fixture
def agent(node: NodeFiles, kubelet: Kubelet) -> Iterator[Agent]:
    made = Agent(node, kubelet.root)
    yield made
    made.kill()


def holding(place: Place) -> subprocess.Popen[str]:
    child = place.start(TAKES_ALL + "print('held', flush=True)\nimport signal; signal.pause()\n")
    assert child.stdout is not None
    child.stdout.readline()
    assert child.stdout.readline() == "held\n"
    return child


def test_a_container_is_held_from_its_first_instruction_to_its_end(
    agent: Agent, kubelet: Kubelet
) -> None:
    assert agent("works") is True
    leaf = kubelet.leaf(1)
    path = str(leaf.directory)
    agent("set", path, 3226)
    child = holding(leaf)
    try:
        assert agent("get", path) == [3226, 3226, 3226]
        child.send_signal(signal.SIGKILL)
    finally:
        child.kill()
        child.communicate()
    # What a killed process held is free again, and its limit still holds the next one.
    assert agent("get", path) == [3226, 3226, 0]
    assert leaf.python(TAKES_ALL) == "3226 3226 3226\n"
    agent("cleared", path)
    assert agent("get", path) == NONE


def test_a_resize_reaches_a_running_program_larger_and_smaller(
    agent: Agent, kubelet: Kubelet
) -> None:
    leaf, card = kubelet.leaf(1), agent("card")
    for mib in (3226, 6452, 1075):
        held = agent("sweep", [kubelet.pod(1, card, mib)], 0)
        assert held == {kubelet.uid(1): [kubelet.id(1)]}
        assert leaf.python(TAKES_ALL) == f"{mib} {mib} {mib}\n"


def test_memory_above_a_lowered_limit_stays_and_nothing_is_added(
    agent: Agent, kubelet: Kubelet
) -> None:
    leaf, card = kubelet.leaf(1), agent("card")
    agent("sweep", [kubelet.pod(1, card, 3226)], 0)
    child = holding(leaf)
    try:
        agent("sweep", [kubelet.pod(1, card, 1075)], 0)
        assert agent("get", str(leaf.directory)) == [1075, 1075, 3226]
        assert leaf.run(sys.executable, "-c", TAKES_ALL).stdout == ""  # not even a context
    finally:
        child.kill()
        child.communicate()
    assert leaf.python(TAKES_ALL) == "1075 1075 1075\n"


def test_an_agent_that_was_killed_finds_everything_as_it_was(
    agent: Agent, kubelet: Kubelet
) -> None:
    path = str(kubelet.leaf(1).directory)
    agent("set", path, 3226)
    agent.kill()
    again = Agent(kubelet.node, kubelet.root)
    try:
        assert again("get", path) == [3226, 3226, 0]
        # A container that ended while there was no agent loses its limit.
        for now_s in (0, 60):
            assert again("sweep", [], now_s) == {}
        assert again("get", path) == NONE
    finally:
        again.kill()


def test_100_containers_at_once_are_held_and_leave_nothing(
    agent: Agent, kubelet: Kubelet, node: NodeFiles
) -> None:
    card = agent("card")
    leaves = [kubelet.leaf(number) for number in range(100)]
    for number, leaf in enumerate(leaves):
        agent("set", str(leaf.directory), 50 + number)
    for number in range(0, 100, 20):
        mib = 50 + number
        assert leaves[number].python(TAKES_ALL) == f"{mib} {mib} {mib}\n"
    pods = [kubelet.pod(number, card, 50 + number) for number in range(100)]
    assert len(agent("sweep", pods, 0)) == 100
    for number in range(50):
        agent("cleared", str(leaves[number].directory))
    for number in range(100):
        kubelet.remove(number)
    for now_s in (0, 60):
        agent("sweep", [], now_s)
    # A new cgroup makes the driver drop the limits of those that were removed.
    agent("get", str(kubelet.leaf(200).directory))
    with opened(node.state) as (_, state):
        assert not any(state.limits[number].is_set for number in range(state.limits_seen))
