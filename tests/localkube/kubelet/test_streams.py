import asyncio
import signal
import socket
from pathlib import Path

import pytest

from kubeclient.resources import CONFIG_MAPS
from localkube.names import DEFAULT as NAMES
from localkube.node_streams import AttachOptions, Connection, LogOptions, NodeRefusal
from tests.localkube.kubelet.world import container, is_ready, phase_is, pod, shell, world

FOREVER = "sleep 1000"
NOBODY = "00000000-0000-4000-8000-000000000000"
SERVE = """
import socket
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
while True:
    connection, _ = listening.accept()
    connection.sendall(connection.recv(99).upper())
    connection.close()
"""


async def fetched(connection: Connection, path: str = "/") -> bytes:
    await connection.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
    answer = b""
    while chunk := await connection.read():
        answer += chunk
    await connection.close()
    return answer


async def test_logs_are_whole_and_in_order(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        script = "for i in 1 2 3; do echo out$i; echo err$i >&2; done; printf end"
        found = await here.run(shell("p", script, restartPolicy="Never"), phase_is("Succeeded"))
        said = await here.log(found)
        assert sorted(said.split()) == [
            b"end",
            b"err1",
            b"err2",
            b"err3",
            b"out1",
            b"out2",
            b"out3",
        ]
        assert await here.log(found, tail_lines=0) == b""
        assert await here.log(found, limit_bytes=3) == said[:3]
        stamped = await here.log(found, timestamps=True, tail_lines=1)
        assert len(stamped.split(b" ")[0]) == len("2026-11-15T20:00:00.000000000Z")


async def test_logs_can_be_followed_to_the_end(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        script = "echo one; read -r _ < $HOME/pipe; echo two"
        found = await here.run(shell("p", f"mkfifo $HOME/pipe; {script}", restartPolicy="Never"))
        options = LogOptions(container="c", follow=True)
        lines = here.streams.logs(found["metadata"]["uid"], options)
        assert await anext(lines) == b"one\n"
        code, *_ = await here.output(found, "echo go > $HOME/pipe")
        assert code in (
            0,
            128 + signal.SIGKILL,
        )  # the program that ends the container may be killed with it
        assert b"".join([chunk async for chunk in lines]) == b"two\n"


async def test_a_missing_log_is_refused_with_a_message(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        found = await here.run(shell("p", FOREVER))
        with pytest.raises(NodeRefusal, match="previous terminated container") as refusal:
            await here.log(found, previous=True)
        assert refusal.value.code == 400
        with pytest.raises(NodeRefusal, match='container "x" in pod "p" is not available'):
            await here.log(found, "x")
        with pytest.raises(NodeRefusal, match="is not on this node"):
            await here.log({"metadata": {"uid": NOBODY}})
        env = [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "no", "key": "no"}}}]
        waiting = await here.run(
            shell("q", FOREVER, container={"env": env}),
            lambda p: "message" in container(p).get("state", {}).get("waiting", {}),
        )
        with pytest.raises(NodeRefusal) as refusal:
            await here.log(waiting)
        assert refusal.value.message == (
            'container "c" in pod "q" is waiting to start: CreateContainerConfigError'
        )


async def test_exec_has_streams_and_an_exit_code(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        found = await here.run(shell("p", FOREVER))
        script = "read line; echo got $line; echo err >&2; cat; exit 7"
        process = await here.exec(found, "sh", "-c", script, stdin=True, stdout=True, stderr=True)
        await process.write_stdin(b"this\n")
        await process.write_stdin(b"rest")
        await process.close_stdin()
        out = b"".join([chunk async for chunk in process.stdout()])
        err = b"".join([chunk async for chunk in process.stderr()])
        assert (out, err) == (b"got this\nrest", b"err\n")
        assert await process.wait() == 7
        await process.hang_up()


async def test_exec_sees_what_the_container_sees(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        env = {"env": [{"name": "WHO", "value": "me"}]}
        found = await here.run(shell("p", f"echo there > $HOME/x; {FOREVER}", container=env))
        assert await here.output(found, "echo $WHO; cat $HOME/x") == (0, b"me\nthere\n")


async def test_exec_with_a_terminal(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        found = await here.run(shell("p", FOREVER))
        process = await here.exec(
            found, "sh", "-c", "read _; stty size; exit 3", stdin=True, stdout=True, tty=True
        )
        await process.resize(120, 40)
        await process.write_stdin(b"\n")
        out = b"".join([chunk async for chunk in process.stdout()])
        assert b"40 120" in out
        assert await process.wait() == 3
        await process.hang_up()


async def test_a_client_that_disconnects_sends_the_program_sighup(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        found = await here.run(shell("p", FOREVER))
        process = await here.exec(found, "sleep", "1000", stdout=True)
        await process.hang_up()
        assert await process.wait() == 129


async def test_exec_of_a_missing_program_or_in_an_ended_container_is_refused(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        found = await here.run(shell("p", FOREVER))
        for command, code, why in (
            ("no-such-program", 127, b"executable file not found in $PATH"),
            ("/etc/passwd", 126, b"permission denied"),
        ):
            process = await here.exec(found, command, stdout=True, stderr=True)
            err = b"".join([chunk async for chunk in process.stderr()])
            assert err == b'exec: "%s": %s\n' % (command.encode(), why)
            assert await process.wait() == code
            await process.hang_up()
        done = await here.run(shell("q", "true", restartPolicy="Never"), phase_is("Succeeded"))
        with pytest.raises(NodeRefusal, match='container not found \\("c"\\)'):
            await here.exec(done, "true")


async def test_exec_works_in_a_timer(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        found = await here.run(pod("p", annotations={NAMES.runtime_annotation: "timer"}))
        assert await here.output(found, "echo $HOSTNAME") == (0, b"p\n")
        with pytest.raises(NodeRefusal, match="is a timer"):
            await here.streams.attach(found["metadata"]["uid"], AttachOptions(container="c"))
        process = await here.exec(found, "sleep", "1000")
        await here.delete("p")
        assert await process.wait() == 137


async def test_attach_reads_output_and_writes_input(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        stdin = {"stdin": True, "stdinOnce": True}
        script = "echo early; cat; echo over >&2"
        found = await here.run(shell("p", script, container=stdin, restartPolicy="Never"))
        options = AttachOptions(container="c", stdin=True, stdout=True, stderr=True)
        attached = await here.streams.attach(found["metadata"]["uid"], options)
        await attached.write_stdin(b"hello\n")
        heard = attached.stdout()
        chunk = await anext(heard)
        while b"hello" not in chunk:
            chunk = await anext(heard)
        await attached.close_stdin()
        assert [chunk async for chunk in attached.stderr()] == [b"over\n"]
        assert await attached.wait() == 0
        await attached.hang_up()


async def test_the_first_to_attach_hears_what_was_said_before(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        script = "echo one; echo err >&2; printf two; : > $HOME/said; read -r _; echo three"
        stdin = {"stdin": True, "stdinOnce": True}
        found = await here.run(shell("p", script, container=stdin, restartPolicy="Never"))
        assert (await here.output(found, "until [ -e $HOME/said ]; do :; done"))[0] == 0
        options = AttachOptions(container="c", stdin=True, stdout=True, stderr=True)
        first = await here.streams.attach(found["metadata"]["uid"], options)
        second = await here.streams.attach(found["metadata"]["uid"], options)
        await first.write_stdin(b"\n")
        assert b"".join([chunk async for chunk in first.stdout()]) == b"one\ntwothree\n"
        assert b"".join([chunk async for chunk in first.stderr()]) == b"err\n"
        assert b"".join([chunk async for chunk in second.stdout()]) == b"three\n"
        await first.hang_up()
        await second.hang_up()


async def test_an_archive_of_another_user_can_be_unpacked(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        found = await here.run(shell("p", FOREVER))
        pack = "cd $HOME; echo x > f; tar --owner=4321 --group=4321 -cf a.tar f; rm f"
        assert await here.output(found, f"{pack}; tar -xf a.tar && cat f") == (0, b"x\n")


async def test_only_ports_of_the_pod_can_be_reached(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        server = {"image": "python", "args": ["python", "-c", SERVE]}
        found = await here.run(pod("p", container=server))
        uid = found["metadata"]["uid"]
        lines = here.streams.logs(uid, LogOptions(container="c", follow=True))
        port = int(await anext(lines))
        connection = await here.streams.dial(uid, port)
        await connection.write(b"abc")
        await connection.close_write()
        assert await connection.read() == b"ABC"
        assert await connection.read() == b""
        await connection.close()
        other = await here.run(shell("q", FOREVER))
        with socket.create_server(("127.0.0.1", 0)) as ours:
            for closed in (port, ours.getsockname()[1]):
                with pytest.raises(NodeRefusal, match=f"listens on port {closed}"):
                    await here.streams.dial(other["metadata"]["uid"], closed)


async def test_two_web_servers_may_have_the_same_port(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        image = {"image": "nginx:1.27", "ports": [{"containerPort": 80}]}
        for name in ("a", "b"):
            found = await here.run(pod(name, container=image))
            connection = await here.streams.dial(found["metadata"]["uid"], 80)
            assert b"Welcome to nginx" in await fetched(connection)


async def test_a_web_server_shows_what_is_mounted_and_nothing_else(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        page = {"metadata": {"name": "page", "namespace": "default"}, "data": {"x.txt": "mine"}}
        await here.kube.create(CONFIG_MAPS, page)
        mount = {"name": "page", "mountPath": "/usr/share/nginx/html"}
        image = {"image": "nginx", "volumeMounts": [mount]}
        volumes = [{"name": "page", "configMap": {"name": "page"}}]
        uid = (await here.run(pod("p", container=image, volumes=volumes)))["metadata"]["uid"]
        assert (await fetched(await here.streams.dial(uid, 80), "/x.txt")).endswith(b"mine")
        answer = await fetched(await here.streams.dial(uid, 80), "/../../../../etc/passwd")
        assert answer.startswith(b"HTTP/1.0 404")


async def test_a_flood_of_output_does_not_stop_the_server(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.run(shell("flood", "yes"))
        async with asyncio.timeout(60):
            await here.run(shell("p", FOREVER))
        found = await here.until("flood", is_ready)
        assert await here.log(found, tail_lines=2) == b"y\ny\n"
