"""Containers with their own view of the machine (if the kernel allows it), and without."""

import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from localkube.kubelet.launches import Launches
from tests.localkube.kubelet.world import World, container, phase_is, settings, shell, world

MOUNT = {
    "container": {"volumeMounts": [{"name": "v", "mountPath": "/data/here"}]},
    "volumes": [{"name": "v", "emptyDir": {}}],
}


async def allowed(directory: Path) -> bool:
    launches = Launches(directory / "probe", isolate=True)
    try:
        return await launches.namespaces()
    finally:
        await launches.close()


async def said(here: World, script: str, **spec: object) -> str:
    obj = shell("p", script, restartPolicy="Never", **spec)
    found = await here.run(obj, lambda p: p["status"]["phase"] in ("Succeeded", "Failed"))
    return (await here.log(found)).decode()


async def test_volumes_are_at_their_mount_path(tmp_path: Path) -> None:
    if not await allowed(tmp_path):
        pytest.skip("this machine allows no user namespaces")
    async with world(tmp_path) as here:
        assert await said(here, "echo x > /data/here/f; cat /data/here/f", **MOUNT) == "x\n"


async def test_the_machine_is_read_only_and_peoples_homes_are_hidden(tmp_path: Path) -> None:
    if not await allowed(tmp_path):
        pytest.skip("this machine allows no user namespaces")
    private = tmp_path / "private"  # in /tmp, as people's files may be
    private.write_text("hidden")
    async with world(tmp_path) as here:
        script = f"""
        touch /usr/x /etc/x 2>&1 | grep -c Read-only
        cat {private} 2>/dev/null || echo not there
        echo $HOME; pwd; hostname; id -u
        touch /tmp/mine /mine && echo written
        """
        lines = (await said(here, script)).splitlines()
        assert lines == ["2", "not there", "/root", "/", "p", "0", "written"]


async def test_the_clusters_own_files_are_hidden_wherever_they_are(tmp_path: Path) -> None:
    if not await allowed(tmp_path):
        pytest.skip("this machine allows no user namespaces")
    with TemporaryDirectory(dir="/var/tmp") as name:
        place = Path(name)
        for part in ("data", "private", "beside"):
            (place / part).mkdir()
            (place / part / "key").write_text(part)
        chosen = replace(settings(place / "data"), private=(place / "private",))
        async with world(place / "data", chosen) as here:
            script = f"""
            cat {place}/data/key {place}/private/key 2>/dev/null || echo not there
            ls {place}; ls {place}/data {place}/data/pods
            cat {place}/beside/key 2>/dev/null; python -c 'print("runs")'
            echo x > /data/here/f; cat /data/here/f
            umount {place}/data 2>/dev/null; cat {place}/data/ca.key 2>/dev/null || echo not there
            """
            lines = (await said(here, script, **MOUNT)).split()
    data, pods = f"{place}/data:", f"{place}/data/pods:"
    assert lines == [
        *("not", "there", "data", data, "pods", pods, "python"),
        *("runs", "x", "not", "there"),
    ]


async def test_a_container_reaches_no_process_but_its_own(tmp_path: Path) -> None:
    if not await allowed(tmp_path):
        pytest.skip("this machine allows no user namespaces")
    async with world(tmp_path) as here:
        found = await here.run(shell("p", "sleep 1000 & wait"))
        script = f"""
        kill -0 {os.getpid()} 2>/dev/null || echo not there
        kill -9 1; kill -0 1 && echo init stays
        kill -0 2 && echo so does the program
        """
        assert await here.output(found, script) == (
            0,
            b"not there\ninit stays\nso does the program\n",
        )
        await here.output(found, "kill -9 2")
        found = await here.until("p", lambda p: bool(container(p)["lastState"]))
        assert container(found)["lastState"]["terminated"]["exitCode"] == 137


async def test_a_container_runs_as_the_user_of_its_security_context(tmp_path: Path) -> None:
    if not await allowed(tmp_path):
        pytest.skip("this machine allows no user namespaces")
    async with world(tmp_path) as here:
        context = {"runAsUser": 1234, "runAsGroup": 2345}
        assert await said(here, "id -u; id -g", securityContext=context) == "1234\n2345\n"


async def test_without_isolation_an_event_says_where_volumes_are(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, replace(settings(tmp_path), isolate=False)) as here:
        script = (
            "echo x > $LOCALKUBE_ROOT/data/here/f; cat $LOCALKUBE_ROOT/data/here/f; pwd; echo $HOME"
        )
        first, cwd, home = (await said(here, script, **MOUNT)).split()
        assert first == "x"
        assert cwd == home
        assert Path(cwd).is_relative_to(tmp_path / "pods")
        event = await here.until_event("MountPathElsewhere", "p")
        assert "/data/here" in event["message"]
        assert "$LOCALKUBE_ROOT" in event["message"]


async def test_without_isolation_message_and_temporary_files_still_work(tmp_path: Path) -> None:
    async with world(tmp_path, replace(settings(tmp_path), isolate=False)) as here:
        script = "cd $(mktemp -d) && pwd; echo bye > $LOCALKUBE_ROOT/dev/termination-log"
        found = await here.run(shell("p", script, restartPolicy="Never"), phase_is("Succeeded"))
        place = (await here.log(found)).decode().strip()
        assert Path(place).is_relative_to(tmp_path / "pods")
        status = found["status"]["containerStatuses"][0]
        assert status["state"]["terminated"]["message"] == "bye\n"


async def test_settings_without_effect_cause_events(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        privileged = {"securityContext": {"privileged": True}}
        await here.run(shell("p", "sleep 1000", container=privileged))
        event = await here.until_event("NotSupported", "p")
        assert event["message"].startswith("securityContext.privileged has no effect")


IN_A_TERMINAL = """python -c 'import pty; pty.spawn(["tty"])'"""


async def test_programs_open_terminals_and_see_none_of_the_machine(tmp_path: Path) -> None:
    if not await allowed(tmp_path):
        pytest.skip("this machine allows no user namespaces")
    ours, theirs = os.openpty()
    try:
        async with world(tmp_path) as here:
            lines = (await said(here, f"ls /dev/pts; {IN_A_TERMINAL}")).split()
        assert lines == ["ptmx", "/dev/pts/0"]
    finally:
        os.close(ours)
        os.close(theirs)


async def test_a_terminal_that_a_client_asks_for_is_one_of_the_container(tmp_path: Path) -> None:
    if not await allowed(tmp_path):
        pytest.skip("this machine allows no user namespaces")
    async with world(tmp_path) as here:
        found = await here.run(shell("p", "exec sleep 1000", container={"tty": True}))
        process = await here.exec(found, "tty", stdout=True, tty=True)
        out = b"".join([chunk async for chunk in process.stdout()])
        assert (out, await process.wait()) == (b"/dev/pts/0\r\n", 0)
        await process.hang_up()


async def test_the_terminal_of_a_container_is_its_console(tmp_path: Path) -> None:
    if not await allowed(tmp_path):
        pytest.skip("this machine allows no user namespaces")
    async with world(tmp_path) as here:
        assert await said(here, "tty", container={"tty": True}) == "/dev/console\r\n"
