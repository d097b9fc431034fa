"""A container that was promised a card does not start without it, where the runtime asks."""

import asyncio
import errno
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from gpupool.agent import way_facts
from gpupool.agent.card_watch import REASON
from gpupool.agent.injection import Injection
from gpupool.agent.injector import Injector
from gpupool.agent.settings import AgentSettings
from gpupool.agent.start_check import StartCheck
from gpupool.agent.way_facts import OwnDriver
from gpupool.agent.ways import card_check
from gpupool.contract.inventory import inventory_of
from gpupool.contract.names import ANNOTATION_INVENTORY, ENV_CARD_CHECK
from gpupool.core.gpu import Isolation
from gpupool.core.ways import Way, Ways
from gpupool.hardware.cdi import Specs
from kubeclient.nri import messages as nri
from kubeclient.nri.plugin import Refused
from kubeclient.resources import PODS
from kubeclient.wire import encode
from tests.agent.nodes import M40, Node
from tests.agent.test_injector import Wall
from tests.agent.test_missing_cards import PLAIN, mounts
from tests.agent.test_shrinks import pod
from tests.kubeclient.nri.runtime import Runtime, listening

ID = "c" * 64
NODE = mounts("/ /proc /dev/shm /data")  # what the node itself has mounted
MADE = mounts(f"{PLAIN} /dev/shm /dev/termination-log")
WITH_CARD = f"{MADE}{mounts('/usr/lib64/libcuda.so.1')}"
BY_CLASS = Ways(Way.RUNTIME_CLASS, runtime_class="nvidia")
POD = nri.PodSandbox("s", "train", "u", "ml", runtime_handler="nvidia")
TOLD_MOUNTS = tuple(
    map(nri.Mount, ("/proc", "/dev/shm", "/data", "/dev/termination-log", "/etc/hosts"))
)
WORDS = (
    "container main was promised a card, which did not get into it: it has no file of the driver. "
    "Node gpu-1, way runtime-class=nvidia. `gpupool doctor --canary` checks the node"
)


def container(ways: Ways = BY_CLASS, **changes: object) -> nri.Container:
    """As the kubelet has it made on a node with these ways."""
    check = card_check("gpu-1", ways, ("/dev/nvidiactl", "/dev/dxg"))
    env = ("PATH=/bin", *([f"{ENV_CARD_CHECK}={check}"] if check else []))
    made = nri.Container(ID, "s", "main", env=env, mounts=TOLD_MOUNTS, pid=7)
    return replace(made, **changes)  # type: ignore[arg-type]


@dataclass
class Seen:
    """The processes of a node, and what is told."""

    mounts: dict[int, str] = field(default_factory=lambda: {1: NODE, 7: MADE})
    owners: dict[int, str] = field(default_factory=lambda: {7: ID})
    told: list[tuple[str, str]] = field(default_factory=list)
    searched: list[set[str]] = field(default_factory=list)

    def find(self, ids: Collection[str]) -> Mapping[str, list[int]]:
        self.searched.append(set(ids))
        return {id: [pid for pid, owner in self.owners.items() if owner == id] for id in ids}

    def check(self, own: OwnDriver | None = None) -> StartCheck:
        return StartCheck(
            "gpu-1",
            own,
            lambda pid: self.mounts.get(pid, ""),
            lambda pid: self.owners.get(pid, ""),
            self.find,
            lambda uid, words: self.told.append((uid, words)),
        )


async def test_a_container_without_its_card_is_refused_with_node_and_way() -> None:
    seen = Seen()
    assert await seen.check().refusal(POD, container()) == WORDS
    assert (seen.told, seen.searched) == ([("u", WORDS)], [])  # its process was named


async def test_a_container_with_its_card_starts() -> None:
    seen = Seen(mounts={1: NODE, 7: WITH_CARD})
    assert await seen.check().refusal(POD, container()) == ""
    assert seen.told == []


@pytest.mark.parametrize("way", [Way.NRI, Way.MOUNTS])
async def test_containers_whose_cards_nobody_else_puts_in_are_not_looked_at(way: Way) -> None:
    seen = Seen(mounts={})
    assert await seen.check().refusal(POD, container(Ways(way))) == ""
    assert seen.searched == []


@pytest.mark.parametrize(
    "env",
    [
        (),
        ("PATH=/bin",),
        (f"{ENV_CARD_CHECK}=",),
        (f"{ENV_CARD_CHECK}=/dev/nvidiactl node gpu-1, way runtime", f"{ENV_CARD_CHECK}="),
        (f"{ENV_CARD_CHECK}=whatever its user likes",),
    ],
)
async def test_nothing_is_checked_that_was_not_promised_or_that_its_user_does_not_want(
    env: tuple[str, ...],
) -> None:
    assert await Seen().check().refusal(POD, container(env=env)) == ""


async def test_the_process_is_looked_for_where_the_runtime_counts_otherwise() -> None:
    """A runtime in a PID namespace of its own names another process, or nobody."""
    for pid in (0, 7):
        seen = Seen(mounts={1: NODE, 7: WITH_CARD, 9: MADE}, owners={7: "b" * 64, 9: ID})
        assert await seen.check().refusal(POD, container(pid=pid)) == WORDS
        assert seen.searched == [{ID}]


@pytest.mark.parametrize(
    "seen",
    [
        Seen(owners={}),  # its cgroup says nothing that we know
        Seen(mounts={1: NODE}),  # gone meanwhile
        Seen(mounts={1: NODE, 7: NODE}),  # a process of the node that serves a virtual machine
        Seen(mounts={1: NODE, 7: mounts("/ /proc")}),  # gVisor
        # A volume with the root of a busy node in it: the driver may be behind the end.
        Seen(mounts={1: NODE, 7: MADE + mounts("/host/x ") * 40_000 + WITH_CARD}),
    ],
)
async def test_nobody_is_refused_whose_mounts_cannot_be_seen(seen: Seen) -> None:
    assert await seen.check().refusal(POD, container()) == ""
    assert seen.told == []


@pytest.mark.parametrize(("handler", "is_refused"), [("", True), ("nvidia", True), ("kata", False)])
async def test_pods_of_other_runtimes_are_not_looked_at(handler: str, is_refused: bool) -> None:
    pod = replace(POD, runtime_handler=handler)
    assert bool(await Seen().check().refusal(pod, container())) is is_refused


async def test_nobody_is_refused_where_the_agent_shows_no_file_of_its_own_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(way_facts, "_CONTROL_DEVICES", (tmp_path,))
    assert await Seen().check(OwnDriver(Way.RUNTIME)).refusal(POD, container()) == ""
    monkeypatch.setattr(way_facts, "_CONTROL_DEVICES", (tmp_path / "none",))
    assert await Seen().check(OwnDriver(Way.RUNTIME)).refusal(POD, container()) == WORDS


async def test_a_refused_container_gets_no_limit_of_the_driver() -> None:
    wall = Wall()
    injector = Injector(
        "gpu-1", Specs(()), lambda: (), wall, lambda is_asked: None, starts=Seen().check()
    )
    with pytest.raises(Refused, match="Node gpu-1, way runtime-class=nvidia"):
        await injector.start(POD, container())
    assert wall.calls == []


async def test_a_check_that_fails_keeps_nobody_from_starting() -> None:
    def broken(pid: int) -> str:
        raise OSError("no /proc")

    starts = Seen().check()._replace(mountinfo=broken)
    injector = Injector("gpu-1", Specs(()), tuple, Wall(), lambda is_asked: None, starts=starts)
    await injector.start(POD, container())


async def test_the_agent_says_that_it_checks_and_reports_what_it_has_refused(
    node: Node, tmp_path: Path
) -> None:
    await node.create()
    node.insert([M40])
    made = await node.kube.create(PODS, pod(uid="", isolation=Isolation.WHOLE))
    socket, seen = tmp_path / "nri.sock", Seen()
    check = seen.check()
    settings: dict[str, Any] = {
        "nri": socket,
        "nri_only_checks": True,
        "mountinfo": check.mountinfo,
        "container": check.container,
        "pids": seen.find,
    }
    async with listening(socket) as plugins, node.agent(way=Way.RUNTIME, **settings):
        runtime = await plugins.get()
        await begin(runtime, "containerd")

        async def is_told() -> bool:
            annotations = (await node.get())["metadata"].get("annotations") or {}
            text = annotations.get(ANNOTATION_INVENTORY)
            ways = inventory_of(text).ways if text else None
            return ways is not None and ways.checks_starts

        await node.wait(is_told)
        sandbox = nri.PodSandbox("s", "p", made["metadata"]["uid"], "default")
        change = nri.StateChangeEvent(nri.Event.START_CONTAINER, sandbox, container())
        answer = await runtime.ask_raw("StateChange", encode(change))
        assert answer.status
        assert "did not get into it" in answer.status.message
        assert "way runtime-class=nvidia" in answer.status.message
        assert "did not get into it" in await node.wait_event(REASON)


# -- with a container runtime ------------------------------------------------------------------


def injection(socket: Path, seen: Seen, *, only_checks: bool = True) -> Injection:
    check = seen.check()
    settings = AgentSettings(
        "gpu-1",
        nri=socket,
        nri_only_checks=only_checks,
        cdi=Specs(()),
        mountinfo=check.mountinfo,
        container=check.container,
        pids=seen.find,
    )
    return Injection(settings, tuple, Wall(), lambda: None, check.told)


async def begin(runtime: Runtime, name: str) -> int:
    """Returns the events that the plugin wants."""
    await runtime.accept_registration()
    configured = nri.ConfigureRequest("", name, "v2.2.9")
    answer = await runtime.ask("Configure", configured, nri.ConfigureResponse)
    await runtime.ask("Synchronize", nri.SynchronizeRequest(), nri.SynchronizeResponse)
    return answer.events


async def test_a_runtime_is_told_not_to_start_it_and_nothing_else_is_asked(tmp_path: Path) -> None:
    socket, seen = tmp_path / "nri.sock", Seen()
    made = injection(socket, seen)
    async with listening(socket) as plugins, asyncio.timeout(60):
        running = asyncio.create_task(made.run())
        runtime = await plugins.get()
        events = await begin(runtime, "containerd")
        assert events & 1 << (nri.Event.START_CONTAINER - 1)
        assert not events & 1 << (nri.Event.CREATE_CONTAINER - 1)
        assert made.checks_starts(0.0)
        assert not made.is_there  # as a way of cards
        change = nri.StateChangeEvent(nri.Event.START_CONTAINER, POD, container())
        answer = await runtime.ask_raw("StateChange", encode(change))
        assert answer.status
        assert answer.status.message == WORDS
        seen.mounts[7] = WITH_CARD
        await runtime.ask("StateChange", change, nri.Empty)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("only_checks", [True, False])
async def test_a_socket_that_the_agent_may_not_look_for_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only_checks: bool
) -> None:
    """As where SELinux keeps the agent from it. It must not end with an error."""

    def denied(*args: object, **options: object) -> os.stat_result:
        raise PermissionError(errno.EACCES, "Permission denied")

    made = injection(tmp_path / "nri.sock", Seen(), only_checks=only_checks)
    monkeypatch.setattr(os, "stat", denied)
    assert not made.is_there
    running = asyncio.create_task(made.run())
    await asyncio.sleep(0)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_runtime_that_does_not_obey_is_not_believed_to(tmp_path: Path) -> None:
    """CRI-O starts the container all the same: nobody may rely on the check."""
    socket = tmp_path / "nri.sock"
    made = injection(socket, Seen())
    async with listening(socket) as plugins, asyncio.timeout(60):
        running = asyncio.create_task(made.run())
        await begin(await plugins.get(), "cri-o")
        assert not made.checks_starts(0.0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_connection_that_was_lost_counts_for_some_seconds(tmp_path: Path) -> None:
    socket = tmp_path / "nri.sock"
    made = injection(socket, Seen(), only_checks=False)
    async with listening(socket) as plugins, asyncio.timeout(60):
        running = asyncio.create_task(made.run())
        runtime = await plugins.get()
        await begin(runtime, "containerd")
        runtime.writer.close()
        await plugins.get()  # it is back, and has not been asked anything yet
        assert made.checks_starts(0.0)
        assert not made.checks_starts(float("inf"))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
