from pathlib import Path

import pytest

from kubeclient.objects import Obj
from localkube.kubelet import probes
from tests.localkube.kubelet.world import container, is_ready, pod, shell, world

FOREVER = "sleep 1000"
WEB = {"image": "nginx", "ports": [{"name": "http", "containerPort": 80}]}


def command(script: str, **more: int) -> Obj:
    return {"exec": {"command": ["sh", "-c", script]}, "periodSeconds": 1, **more}


async def test_a_container_is_ready_when_its_probe_says_so(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        probe = {"readinessProbe": command("test -e $HOME/ready || { echo not yet; exit 1; }")}
        await here.create(shell("p", FOREVER, container=probe))
        event = await here.until_event("Unhealthy", "p")
        assert event["message"] == "Readiness probe failed: not yet\n"
        found = await here.until("p", lambda p: "running" in container(p).get("state", {}))
        assert container(found)["started"]
        assert not container(found)["ready"]
        await here.output(found, "touch $HOME/ready")
        await here.until("p", is_ready)
        await here.output(found, "rm $HOME/ready")
        # Three failures in a row, one each second.
        await here.until("p", lambda p: not is_ready(p))


async def test_a_container_that_is_not_alive_is_restarted(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        probe = {"livenessProbe": command("exit 1", failureThreshold=1)}
        found = await here.run(
            shell("p", FOREVER, container=probe), lambda p: container(p).get("restartCount") == 1
        )
        event = await here.until_event("Killing", "p")
        assert event["message"] == "Container c failed liveness probe, will be restarted"
        assert container(found)["lastState"]["terminated"]["exitCode"] == 143


async def test_other_probes_wait_for_the_start_up_probe(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        probes = {
            "startupProbe": command("test -e $HOME/up", failureThreshold=100),
            "livenessProbe": command("test -e $HOME/up", failureThreshold=1),
        }
        await here.create(shell("p", FOREVER, container=probes))
        found = await here.until("p", lambda p: "running" in container(p).get("state", {}))
        assert not container(found)["started"]
        await here.until_event("Unhealthy", "p")
        await here.output(found, "touch $HOME/up")
        found = await here.until("p", is_ready)
        assert container(found)["started"]
        assert container(found)["restartCount"] == 0


async def test_pages_and_ports_are_probed_where_they_really_are(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        probes = {
            "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1},
            "livenessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 1},
        }
        found = await here.run(pod("p", container=WEB | probes))
        assert container(found)["restartCount"] == 0


async def test_a_refused_connection_is_told_in_the_kubelets_words(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        for name, action, start in (
            ("h", {"httpGet": {"path": "/x", "port": 1}}, 'Get "http://{ip}:1/x": '),
            ("t", {"tcpSocket": {"port": 1}}, ""),
        ):
            probe = {"readinessProbe": action | {"periodSeconds": 1}}
            await here.create(shell(name, FOREVER, container=probe))
            event = await here.until_event("Unhealthy", name)
            found = await here.until(name, lambda p: "podIP" in p["status"])
            ip = found["status"]["podIP"]
            assert event["message"] == (
                f"Readiness probe failed: {start.format(ip=ip)}"
                f"dial tcp {ip}:1: connect: connection refused"
            )


async def test_a_page_with_an_error_is_no_success(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        mount = {"volumeMounts": [{"name": "empty", "mountPath": "/usr/share/nginx/html"}]}
        probe = {"readinessProbe": {"httpGet": {"path": "/x", "port": 80}, "periodSeconds": 1}}
        volumes = [{"name": "empty", "emptyDir": {}}]
        await here.create(pod("p", container=WEB | probe | mount, volumes=volumes))
        event = await here.until_event("Unhealthy", "p")
        assert event["message"] == (
            "Readiness probe failed: HTTP probe failed with statuscode: 404"
        )


async def test_grpc_probes_are_refused_with_a_message(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        probe = {"livenessProbe": {"grpc": {"port": 1}}}
        found = await here.run(
            shell("p", FOREVER, container=probe),
            lambda p: "message" in container(p).get("state", {}).get("waiting", {}),
        )
        waiting = container(found)["state"]["waiting"]
        assert waiting == {
            "reason": "CreateContainerConfigError",
            "message": "livenessProbe.grpc is not supported on local nodes",
        }


async def test_a_probe_has_a_grace_period_of_its_own(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        probe = {
            "livenessProbe": command("exit 1", failureThreshold=1, terminationGracePeriodSeconds=1)
        }
        stubborn = shell(
            "p",
            "trap '' TERM; sleep 1000 & wait; wait; wait",
            container=probe,
            terminationGracePeriodSeconds=3600,
        )
        found = await here.run(stubborn, lambda p: container(p).get("restartCount") == 1)
        assert container(found)["lastState"]["terminated"]["exitCode"] == 137


async def test_a_deleted_pod_does_not_wait_for_the_grace_of_its_probe(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        probe = {"livenessProbe": command("exit 1", failureThreshold=1)}
        stubborn = shell(
            "p",
            "trap '' TERM; sleep 1000 & wait; wait; wait",
            container=probe,
            terminationGracePeriodSeconds=3600,
        )
        await here.create(stubborn)
        await here.until_event("Killing", "p")
        await here.delete("p", grace_s=1)
        await here.until_gone("p")


async def test_a_container_that_never_restarts_is_not_said_to_be_restarted(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        probe = {"livenessProbe": command("exit 1", failureThreshold=1)}
        await here.create(shell("p", FOREVER, container=probe, restartPolicy="Never"))
        event = await here.until_event("Killing", "p")
        assert event["message"] == "Container c failed liveness probe"


async def test_a_host_that_cannot_be_a_name_fails_and_other_probes_go_on(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        probes = {
            "readinessProbe": {"httpGet": {"host": "a..b", "port": 80}, "periodSeconds": 1},
            "livenessProbe": command("test ! -e $HOME/ill", failureThreshold=1),
        }
        await here.create(shell("p", FOREVER, container=probes))
        event = await here.until_event("Unhealthy", "p")
        assert event["message"] == (
            'Readiness probe failed: Get "http://a..b:80/": dial tcp: lookup a..b: no such host'
        )
        found = await here.until("p", lambda p: "running" in container(p).get("state", {}))
        await here.output(found, "touch $HOME/ill")
        await here.until("p", lambda p: container(p).get("restartCount") == 1)


async def test_an_error_of_a_probe_is_no_failure_and_the_probe_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    async def action(*_: object) -> None:
        asked.append(1)
        if len(asked) < 3:
            raise KeyError("a mistake of ours")

    monkeypatch.setitem(probes._ACTIONS, "tcpSocket", action)
    async with world(tmp_path) as here:
        check = {"tcpSocket": {"port": 1}, "periodSeconds": 1, "failureThreshold": 1}
        await here.create(
            shell("p", FOREVER, container={"readinessProbe": check, "livenessProbe": check})
        )
        event = await here.until_event("Unhealthy", "p")
        assert "probe errored and resulted in unknown state: KeyError: 'a mis" in event["message"]
        found = await here.until("p", is_ready)
        assert container(found)["restartCount"] == 0


async def test_a_port_that_nobody_has_is_an_error_and_no_failure(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        check = {"httpGet": {"port": "nope"}, "periodSeconds": 1, "failureThreshold": 1}
        await here.create(shell("p", FOREVER, container={"livenessProbe": check}))
        event = await here.until_event("Unhealthy", "p")
        assert event["message"] == (
            'Liveness probe errored and resulted in unknown state: couldn\'t find port: "nope"'
        )


@pytest.mark.parametrize("line", [b"HTTP/1.1 " + b"9" * 5000, b"HTTP/1.1", b"\xff \xb2\xb3"])
def test_an_answer_without_a_status_code_is_none(line: bytes) -> None:
    assert probes._status_code(line) is None


async def test_a_path_is_escaped_as_urls_want_it(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        check = {"httpGet": {"path": "a b?c=1\n", "port": 1}, "periodSeconds": 1}
        await here.create(shell("p", FOREVER, container={"readinessProbe": check}))
        event = await here.until_event("Unhealthy", "p")
        assert ':1/a%20b?c=1%0A": ' in event["message"]


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb", "a\0b"])
def test_a_header_is_one_header(value: str) -> None:
    action = {"httpHeaders": [{"name": "A", "value": value}]}
    with pytest.raises(probes.ActionErrored, match="invalid header field value"):
        probes._request(action, "/", "host")
