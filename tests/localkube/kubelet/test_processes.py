import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kubeclient.objects import Obj
from kubeclient.resources import CONFIG_MAPS, PODS, SECRETS
from localkube.kubelet import process_table
from localkube.kubelet.process_table import MARK
from localkube.node_streams import LogOptions
from tests.localkube.kubelet.world import (
    World,
    container,
    is_ready,
    phase_is,
    pod,
    shell,
    world,
)

FOREVER = "sleep 1000"


def ended(code: int) -> Callable[[Obj], bool]:
    return lambda found: (
        container(found).get("state", {}).get("terminated", {}).get("exitCode") == code
    )


def waits_for(reason: str) -> Callable[[Obj], bool]:
    return lambda found: (
        container(found).get("state", {}).get("waiting", {}).get("reason") == reason
    )


async def run_once(here: World, script: str, **spec: object) -> bytes:
    """The output of a script that is the program of a pod."""
    obj = shell("p", script, restartPolicy="Never", **spec)
    found = await here.run(obj, lambda p: p["status"]["phase"] in ("Succeeded", "Failed"))
    return await here.log(found)


def living(found: Obj) -> set[int]:
    """The pids of the container's processes, as seen from outside."""
    container_id = container(found)["containerID"].rpartition("/")[2]
    return process_table.marked(set(), {f"{MARK}={container_id}".encode()})


async def test_a_container_runs_and_events_report_it(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        found = await here.run(shell("p", FOREVER))
        assert container(found)["containerID"].startswith("localkube://")
        messages = {
            reason: (await here.until_event(reason, "p"))["message"]
            for reason in ("Pulled", "Created", "Started")
        }
        assert messages == {
            "Pulled": (
                'Container image "busybox" already present on machine and can be accessed by the '
                "pod"
            ),
            "Created": "Container created",
            "Started": "Container started",
        }
        started = await here.until_event("Started", "p")
        assert started["involvedObject"]["fieldPath"] == "spec.containers{c}"
        assert started["source"] == {"component": "kubelet", "host": "n0"}


async def test_the_servers_own_environment_stays_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET_OF_THE_USER", "1")
    async with world(tmp_path) as here:
        said = await run_once(here, "env")
        names = {line.partition("=")[0] for line in said.decode().splitlines()}
        assert "A_SECRET_OF_THE_USER" not in names
        kubernetes = {name for name in names if name.startswith("KUBERNETES_")}
        assert names - kubernetes == {
            "LOCALKUBE_CONTAINER_ID",
            "HOME",
            "HOSTNAME",
            "LANG",
            "PATH",
            "PWD",
        }
        assert b"KUBERNETES_SERVICE_HOST=127.0.0.1\n" in said
        assert b"KUBERNETES_SERVICE_PORT=6443\n" in said


async def test_nothing_else_of_the_server_is_open_inside(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        # The last one is the directory that is being listed.
        assert await run_once(here, "ls /proc/self/fd") == b"0\n1\n2\n3\n"


async def test_variables_come_from_config_maps_secrets_and_fields(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        metadata = {"name": "conf", "namespace": "default"}
        await here.kube.create(CONFIG_MAPS, {"metadata": metadata, "data": {"k": "map"}})
        await here.kube.create(SECRETS, {"metadata": metadata, "stringData": {"s": "secret"}})
        env = [
            {"name": "PLAIN", "value": "$(HOSTNAME)/$$(HOSTNAME)/$(NOBODY)"},
            {"name": "MAP", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "k"}}},
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "conf", "key": "s"}}},
            {"name": "FIELD", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        ]
        given = {"env": env, "envFrom": [{"configMapRef": {"name": "conf"}, "prefix": "P_"}]}
        script = 'echo "$PLAIN|$MAP|$SECRET|$FIELD|$CPU|$P_k"'
        said = await run_once(here, script, container=given)
        assert said == b"p/$(HOSTNAME)/$(NOBODY)|map|secret|n0|8|map\n"


async def test_a_missing_config_map_causes_an_event_and_a_retry(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        env = [{"name": "MAP", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "k"}}}]
        obj = shell("p", FOREVER, container={"env": env})
        found = await here.run(obj, waits_for("CreateContainerConfigError"))
        message = container(found)["state"]["waiting"]["message"]
        assert message == 'configmap "conf" not found'
        event = await here.until_event("Failed", "p")
        assert event["message"] == 'Error: configmap "conf" not found'
        metadata = {"name": "conf", "namespace": "default"}
        await here.kube.create(CONFIG_MAPS, {"metadata": metadata, "data": {"k": "v"}})
        await here.until("p", is_ready)


async def test_a_missing_program_exits_with_127(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        found = await here.run(pod("p", "no-such-program", restartPolicy="Never"), ended(127))
        text = 'exec: "no-such-program": executable file not found in $PATH'
        assert container(found)["state"]["terminated"]["message"] == text
        assert await here.log(found) == f"localkube: {text}\n".encode()


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -9 $$$$", 137), ("true", 0)])
async def test_the_exit_of_a_container_is_in_the_status(
    tmp_path: Path, script: str, code: int
) -> None:
    async with world(tmp_path) as here:
        found = await here.run(shell("p", script, restartPolicy="Never"), ended(code))
        assert container(found)["state"]["terminated"]["reason"] == (
            "Error" if code else "Completed"
        )
        assert phase_is("Failed" if code else "Succeeded")(found)


async def test_the_termination_message_is_kept(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        script = 'echo bye > "${LOCALKUBE_ROOT:-}/dev/termination-log"'
        found = await here.run(shell("p", script, restartPolicy="Never"), phase_is("Succeeded"))
        assert container(found)["state"]["terminated"]["message"] == "bye\n"
        policy = {"terminationMessagePolicy": "FallbackToLogsOnError"}
        obj = shell("q", "echo why; exit 1", restartPolicy="Never", container=policy)
        found = await here.run(obj, phase_is("Failed"))
        assert container(found)["state"]["terminated"]["message"] == "why"


async def test_a_crashing_container_restarts_with_growing_delays(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        obj = shell("p", 'echo "run"; exit 1')
        found = await here.run(obj, waits_for("CrashLoopBackOff"))
        waiting = container(found)["state"]["waiting"]
        uid = found["metadata"]["uid"]
        assert waiting["message"].endswith(f"restarting failed container=c pod=p_default({uid})")
        assert container(found)["lastState"]["terminated"]["exitCode"] == 1
        found = await here.until("p", lambda p: container(p)["restartCount"] >= 2)
        assert await here.log(found, previous=True) == b"run\n"


async def test_a_pod_that_is_deleted_gets_its_grace(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        script = "trap 'sleep 0.2; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
        await here.run(shell("p", script))
        await here.delete("p")
        event = await here.until_event("Killing", "p")
        assert event["message"] == "Stopping container c"
        await here.until_gone("p")


async def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.run(shell("p", "trap '' TERM; while :; do sleep 0.05; done"))
        await here.delete("p", grace_s=1)
        await here.until_gone("p")


async def test_a_forced_delete_ends_it_at_once(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        found = await here.run(shell("p", "trap '' TERM; while :; do sleep 0.05; done"))
        assert living(found)
        await here.delete("p", grace_s=0)
        await here.until_gone("p")
        await here.run(shell("marker", FOREVER))
        assert living(found) == set()


async def test_hooks_run_around_the_program(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        hooks = {
            "postStart": {"exec": {"command": ["sh", "-c", "echo up > $HOME/state"]}},
            "preStop": {"exec": {"command": ["sh", "-c", "echo down > $HOME/state"]}},
        }
        script = "trap 'cat $HOME/state; exit 0' TERM; while :; do sleep 0.02; done"
        found = await here.run(shell("p", script, container={"lifecycle": hooks}))
        assert await here.output(found, "cat $HOME/state") == (0, b"up\n")
        following = LogOptions(container="c", follow=True)
        lines = here.streams.logs(found["metadata"]["uid"], following)
        await here.delete("p")
        assert b"".join([chunk async for chunk in lines]) == b"down\n"
        await here.until_gone("p")


async def test_a_failing_hook_ends_the_container(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        hooks = {"postStart": {"exec": {"command": ["false"]}}}
        obj = shell("p", FOREVER, container={"lifecycle": hooks}, restartPolicy="Never")
        await here.run(obj, ended(137))
        await here.until_event("FailedPostStartHook", "p")


async def test_init_containers_prepare_for_the_others(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        mount = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
        init = {"name": "i", "image": "busybox", "command": ["sh", "-c"], **mount}
        init["args"] = ["echo made > ${LOCALKUBE_ROOT:-}/shared/file"]
        said = await run_once(
            here,
            "cat ${LOCALKUBE_ROOT:-}/shared/file",
            container=mount,
            initContainers=[init],
            volumes=[{"name": "shared", "emptyDir": {}}],
        )
        assert said == b"made\n"


async def test_a_failing_init_container_fails_the_pod(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        init = {"name": "i", "image": "busybox", "command": ["false"]}
        obj = shell("p", FOREVER, initContainers=[init], restartPolicy="Never")
        found = await here.run(obj, phase_is("Failed"))
        assert container(found)["state"] == {"waiting": {"reason": "PodInitializing"}}


async def test_an_unknown_image_has_a_stand_in_and_a_warning(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        image = {"image": "example.com/team/model:1", "ports": [{"containerPort": 8888}]}
        found = await here.run(pod("p", container=image))
        event = await here.until_event("SimulatedImage", "p")
        assert event["type"] == "Warning"
        assert event["message"].startswith('Image "example.com/team/model:1" is not run here')
        connection = await here.streams.dial(found["metadata"]["uid"], 8888)
        await connection.write(b"GET / HTTP/1.0\r\n\r\n")
        assert (await connection.read()).startswith(b"HTTP/1.0 200 OK")
        await connection.close()


async def test_python_images_run_this_python_under_its_own_name(tmp_path: Path) -> None:
    program = """
import sys, orjson, pathlib
print(sys.base_prefix, orjson.__file__.endswith("site-packages/orjson/__init__.py"))
print(pathlib.Path("/proc/self/cmdline").read_bytes().split(bytes(1))[0].decode())
"""
    async with world(tmp_path) as here:
        image = {"image": "python:3.12-slim", "args": ["python", "-c", program]}
        obj = pod("p", container=image, restartPolicy="Never")
        found = await here.run(obj, phase_is("Succeeded"))
        said = (await here.log(found)).decode().splitlines()
        assert said == [f"{sys.base_prefix} True", "python"]


async def test_processes_do_not_outlive_the_fleet(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        script = "setsid sleep 1000 & wait"
        found = await here.run(shell("p", script))
        code, _ = await here.output(found, "true")
        assert code == 0
        assert len(living(found)) == 2
    assert living(found) == set()


async def test_files_of_deleted_pods_are_removed_at_the_next_start(tmp_path: Path) -> None:
    left = tmp_path / "pods" / "00000000-0000-4000-8000-000000000000" / "c0"
    left.mkdir(parents=True)
    async with world(tmp_path) as here:
        kept = (await here.run(shell("kept", FOREVER)))["metadata"]["uid"]
        assert not left.parent.exists()
        assert (tmp_path / "pods" / kept).is_dir()


async def test_storage_of_deleted_nodes_and_volumes_is_removed(tmp_path: Path) -> None:
    pods = tmp_path / "pods"
    for left in (pods / "nodes" / "0123", pods / "volumes" / "gone"):
        left.mkdir(parents=True)
    async with world(tmp_path) as here:
        volume = [{"name": "v", "hostPath": {"path": "/data"}}]
        await here.run(shell("p", FOREVER, volumes=volume))
        assert not (pods / "nodes" / "0123").exists()
        assert not (pods / "volumes" / "gone").exists()
    async with world(tmp_path) as here:
        await here.until("p", is_ready)
        assert len(list((pods / "nodes").iterdir())) == 1


async def test_a_restart_of_the_server_restarts_the_containers(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.run(shell("p", FOREVER))
        await here.run(shell("once", FOREVER, restartPolicy="Never"))
    async with world(tmp_path) as here:
        found = await here.until(
            "p", lambda p: container(p).get("restartCount") == 1 and is_ready(p)
        )
        last = container(found)["lastState"]["terminated"]
        assert (last["exitCode"], last["reason"]) == (255, "Unknown")
        failed = await here.until("once", phase_is("Failed"))
        assert container(failed)["state"]["terminated"]["exitCode"] == 255
        assert await here.kube.get(PODS, "p", "default")
