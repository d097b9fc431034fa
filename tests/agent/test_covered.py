"""Mounts over the limiter's files are seen from the node, where no container can hide them."""

import asyncio
import datetime
import os
import subprocess
from pathlib import Path

import pytest

from gpupool.agent.auditor import COVERED, Auditor
from gpupool.agent.covered import covered, covered_pods, mounts_of
from gpupool.agent.pod_reports import PodReports
from gpupool.core.gpu import Isolation
from gpupool.hardware.driver import ProgramUse
from kubeclient.events import Recorder
from tests.agent.nodes import NAME, V100, Node
from tests.agent.test_audit import Greedy
from tests.agent.test_shrinks import pod

# Mounts as the runtime makes them: id, parent, and where.
MADE = ((1, 0, "/"), (2, 1, "/proc"), (3, 1, "/etc/gpupool"), (4, 1, "/etc/ld.so.preload"))
WHOLE = (*MADE, (5, 1, "/usr/local/gpupool"))
ATTACKS = {
    "/etc/gpupool": (*WHOLE, (6, 3, "/etc/gpupool/limits")),
    "/etc/ld.so.preload": (*WHOLE, (6, 4, "/etc/ld.so.preload")),
    "/usr/local/gpupool": (*WHOLE, (6, 1, "/usr/local")),
}


def text(mounts: tuple[tuple[int, int, str], ...]) -> str:
    return "".join(
        f"{number} {parent} 0:9 /a\\040b {place} ro,nosuid - tmpfs tmpfs rw\n"
        for number, parent, place in mounts
    )


def test_a_container_as_the_runtime_makes_it_is_in_order() -> None:
    assert covered(text(WHOLE)) == ""
    assert covered(text((*WHOLE, (6, 1, "/etc/gpupools"), (7, 1, "/usr/local/nvidia")))) == ""


def test_a_volume_that_was_there_first_covers_nothing() -> None:
    above = ((1, 0, "/"), (2, 1, "/etc"), (3, 2, "/etc/gpupool"), (4, 2, "/etc/ld.so.preload"))
    assert covered(text((*above, (5, 1, "/usr/local/gpupool")))) == ""


@pytest.mark.parametrize("place", ATTACKS)
def test_a_mount_over_a_file_of_the_limiter_is_found(place: str) -> None:
    assert covered(text(ATTACKS[place])) == place


def test_a_process_without_the_limiters_mounts_is_not_accused() -> None:
    """A sandbox of another kind (gVisor) has its mounts inside, where the node cannot look."""
    assert covered(text(((1, 0, "/"), (2, 1, "/proc")))) == ""
    assert covered("") == ""
    assert covered("nonsense\n1 2\n\n") == ""


@pytest.mark.parametrize("isolation", [Isolation.NONE, Isolation.LIMIT])
def test_only_pods_that_must_be_limited_are_looked_at(isolation: Isolation) -> None:
    uses = [ProgramUse(7, "GPU-a", 1), ProgramUse(8, "GPU-a", 1), ProgramUse(9, "GPU-a", 1)]
    owners = {7: "u", 8: "u", 9: "other"}
    found = covered_pods(
        [pod(isolation=isolation)],
        uses,
        lambda pid: owners[pid],
        lambda pid: text(ATTACKS["/etc/gpupool"] if pid == 8 else WHOLE),
    )
    assert found == ({"u": "/etc/gpupool"} if isolation is Isolation.LIMIT else {})


def test_the_mounts_of_a_process_are_those_that_it_sees() -> None:
    assert mounts_of(os.getpid()) == Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    child = subprocess.Popen(["true"])
    child.wait()
    assert mounts_of(child.pid) == ""


async def test_a_covered_limiter_is_one_event_of_the_pod_and_of_the_node(node: Node) -> None:
    await node.create()
    node.insert([V100])
    settings = node.settings(owner=lambda _: "u", mountinfo=lambda _: text(ATTACKS["/etc/gpupool"]))
    seen = await node.get()
    kube = node.agent_kube
    recorder = Recorder(kube, "gpupool-agent", lambda: datetime.datetime.now(datetime.UTC))
    reports = PodReports(kube, NAME, recorder, lambda: seen)
    auditor = Auditor(settings, Greedy(node.files.state), reports)
    for _ in range(2):
        auditor.report_covered([pod()], [ProgramUse(1, "GPU-a", 1)])
    writing = asyncio.create_task(recorder.run())
    words = (
        "its program runs without its limit: something else is mounted over /etc/gpupool in its "
        "container"
    )
    wanted = [(COVERED, f"default/p: {words}"), (COVERED, words)]

    async def are_said() -> bool:
        return sorted(await node.events()) == wanted

    try:
        await node.wait(are_said)
    finally:
        writing.cancel()
