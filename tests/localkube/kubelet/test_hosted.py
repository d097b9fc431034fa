"""Hosted programs: containers that are tasks of the server."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kubeclient.objects import Obj
from kubeclient.resources import PODS, SERVICE_ACCOUNTS
from localkube.kubelet.container_log import LogFile
from localkube.kubelet.hosted import (
    Hosted,
    HostedProgram,
    HostedPrograms,
    ProgramContext,
    log_to_containers,
)
from localkube.kubelet.output import Output
from localkube.kubelet.pace import Pace
from localkube.node_streams import Connection, NodeRefusal
from tests.localkube.kubelet.world import (
    NODE,
    World,
    container,
    is_ready,
    phase_is,
    pod,
    settings,
    world,
)

IMAGE = "example/thing"
log = logging.getLogger("tests.hosted.program")


@asynccontextmanager
async def hosting(directory: Path, program: HostedProgram) -> AsyncIterator[World]:
    given = replace(settings(directory), hosted={IMAGE: Hosted(program, "default")})
    async with world(directory, given) as made:
        yield made


def hosted(name: str = "p", **spec: object) -> Obj:
    more = {"image": f"{IMAGE}:1.0", "args": ["--node=$(NODE)"]} | dict(
        spec.pop("container", {})  # type: ignore[call-overload]
    )
    return pod(name, container=more, **spec)


async def forever(context: ProgramContext) -> int:
    await asyncio.Event().wait()
    return 0


async def test_a_hosted_program_gets_the_settings_of_its_container(tmp_path: Path) -> None:
    told: list[ProgramContext] = []

    async def program(context: ProgramContext) -> int:
        told.append(context)
        return await forever(context)

    env = [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]
    mounts = [{"name": "host", "mountPath": "/host"}]
    volumes = [{"name": "host", "hostPath": {"path": "/var/lib/thing"}}]
    async with hosting(tmp_path, program) as cluster:
        given = hosted(container={"env": env, "volumeMounts": mounts}, volumes=volumes)
        await cluster.run(given)
        context = told[0]
        assert (context.node, context.arguments) == (NODE, (f"--node={NODE}",))
        assert context.env["NODE"] == NODE
        assert context.mounts["/host"].is_dir()


async def test_pods_of_others_do_not_start_a_hosted_program(tmp_path: Path) -> None:
    """It runs behind no wall, and as somebody: a pod must not choose it by its image alone."""
    started: list[ProgramContext] = []

    async def program(context: ProgramContext) -> int:
        started.append(context)
        return await forever(context)

    async with hosting(tmp_path, program) as cluster:
        account = {"metadata": {"name": "other", "namespace": "default"}}
        await cluster.kube.create(SERVICE_ACCOUNTS, account)
        await cluster.run(hosted("p", serviceAccountName="other"))
        await cluster.until_event("SimulatedImage", "p")
        assert not started
        await cluster.run(hosted("q"))
        assert len(started) == 1


async def test_a_hosted_program_ends_with_its_code_and_is_restarted(tmp_path: Path) -> None:
    codes = iter([3, 0])

    async def program(context: ProgramContext) -> int:
        return next(codes)

    async with hosting(tmp_path, program) as cluster:
        found = await cluster.run(hosted(restartPolicy="OnFailure"), phase_is("Succeeded"))
        assert container(found)["restartCount"] == 1
        assert container(found)["lastState"]["terminated"]["exitCode"] == 3


async def test_an_exception_in_a_hosted_program_is_in_its_log(tmp_path: Path) -> None:
    async def program(context: ProgramContext) -> int:
        raise ValueError("a bug")

    async with hosting(tmp_path, program) as cluster:
        found = await cluster.run(hosted(restartPolicy="Never"), phase_is("Failed"))
        assert b"ValueError: a bug" in await cluster.log(found)


async def test_a_hosted_program_that_exits_ends_its_container_alone(tmp_path: Path) -> None:
    ends = iter([SystemExit(3), SystemExit("no more"), SystemExit()])

    async def program(context: ProgramContext) -> int:
        raise next(ends)

    async with hosting(tmp_path, program) as cluster:
        found = await cluster.run(hosted(restartPolicy="OnFailure"), phase_is("Succeeded"))
        assert container(found)["restartCount"] == 2
        assert container(found)["lastState"]["terminated"]["exitCode"] == 1


async def test_a_hosted_program_logs_to_its_container(tmp_path: Path) -> None:
    log_to_containers("tests.hosted")

    async def program(context: ProgramContext) -> int:
        log.warning("hello", extra={"pod": context.arguments[0]})
        await asyncio.to_thread(log.warning, "from a thread")
        return await forever(context)

    async with hosting(tmp_path, program) as cluster:
        first = await cluster.run(hosted("first", container={"args": ["1"]}))
        second = await cluster.run(hosted("second", container={"args": ["2"]}))
        for number, found in ((b"1", first), (b"2", second)):
            async with asyncio.timeout(60):
                while b"thread" not in await cluster.log(found):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            lines = (await cluster.log(found)).splitlines()
            assert lines == [b"WARNING hello pod=" + number, b"WARNING from a thread"]


async def test_deleting_its_pod_cancels_it(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def program(context: ProgramContext) -> int:
        try:
            return await forever(context)
        finally:
            ended.set()

    async with hosting(tmp_path, program) as cluster:
        await cluster.run(hosted())
        await cluster.delete("p")
        await cluster.until_gone("p")
        assert ended.is_set()


async def test_a_hosted_program_ends_and_starts_with_the_server(tmp_path: Path) -> None:
    running: set[int] = set()

    async def program(context: ProgramContext) -> int:
        running.add(id(context))
        try:
            return await forever(context)
        finally:
            running.discard(id(context))

    async with hosting(tmp_path, program) as cluster:
        await cluster.run(hosted())
        assert len(running) == 1
    assert not running
    async with hosting(tmp_path, program) as cluster:
        found = await cluster.until(
            "p", lambda p: is_ready(p) and container(p)["restartCount"] == 1
        )
        assert len(running) == 1
        code, said = await cluster.output(found, "echo one can look around in it")
        assert (code, said) == (0, b"one can look around in it\n")


async def test_a_program_that_is_ended_before_its_first_step_exits_too(tmp_path: Path) -> None:
    programs, exits = HostedPrograms(), []
    programs.exited = lambda run_id, code: exits.append((run_id, code))
    log_file = LogFile(tmp_path / "0.log", lambda: 0, most_bytes=1000, files=1)
    context = ProgramContext(NODE, (), {}, {})
    programs.start("r", forever, context, Output(log_file, Pace()))
    assert programs.end("r")
    await programs.close()
    assert exits == [("r", 143)]
    assert not programs.end("r")
    log_file.close()


async def test_hosted_programs_may_listen_on_the_same_port(tmp_path: Path) -> None:
    async def program(context: ProgramContext) -> int:
        listener = context.ports.listen(80)
        while True:
            reader, writer = await asyncio.open_connection(sock=await listener.accept())
            said = await reader.readline()
            writer.write(context.env["NAME"].encode() + b" heard " + said)
            writer.close()

    async with hosting(tmp_path, program) as cluster:
        for name in ("a", "b"):
            env = [{"name": "NAME", "value": name}]
            made = await cluster.run(hosted(name, container={"env": env}))
            uid = made["metadata"]["uid"]
            connection = await cluster.streams.dial(uid, 80)
            await connection.write(b"hello\n")
            assert await connection.read() == f"{name} heard hello\n".encode()
            assert await connection.read() == b""
            await connection.close()
            with pytest.raises(NodeRefusal, match="listens on port 81"):
                await cluster.streams.dial(uid, 81)


async def test_a_hosted_program_that_accepts_nothing_refuses_what_is_too_much(
    tmp_path: Path,
) -> None:
    async def program(context: ProgramContext) -> int:
        context.ports.listen(80)
        return await forever(context)

    async with hosting(tmp_path, program) as cluster:
        uid = (await cluster.run(hosted()))["metadata"]["uid"]
        opened: list[Connection] = []
        refused = ""
        while not refused and len(opened) < 1000:
            try:
                opened.append(await cluster.streams.dial(uid, 80))
            except NodeRefusal as refusal:
                refused = refusal.message
        assert "Connection refused" in refused
        assert opened
        await cluster.kube.delete(PODS, "p", "default")
        async with asyncio.timeout(60):
            # Its end closes what it has not accepted.
            assert [await each.read() for each in opened] == [b""] * len(opened)
        for each in opened:
            await each.close()
