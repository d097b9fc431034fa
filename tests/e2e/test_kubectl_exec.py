"""kubectl exec, cp, attach, port-forward, debug and proxy."""

import json
import os
import pty
import re
import subprocess
import urllib.request
from collections.abc import Iterator

import pytest

from tests.e2e.conftest import OpenKubectl
from tests.e2e.kubectl import Kubectl, Running, eventually
from tests.e2e.objects import container, pod, shell

pytestmark = pytest.mark.kubectl


@pytest.fixture(scope="module")
def box(open_kubectl: OpenKubectl) -> Iterator[Kubectl]:
    """A pod `box` to run things in, with a second container `other`."""
    with open_kubectl("exec", "process") as kubectl:
        kubectl.apply(pod("box", shell("sleep 1000"), shell("sleep 1000", "other")))
        kubectl.wait("condition=Ready", "pod/box")
        yield kubectl


def fetch(port: int, path: str = "/") -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return str(answer.read().decode())


def forwarded_port(running: Running) -> int:
    text = running.shows("Forwarding from 127.0.0.1:")
    found = re.search(r"127\.0\.0\.1:(\d+) ->", text)
    assert found, text
    return int(found[1])


def test_output_and_errors_are_kept_apart(box: Kubectl) -> None:
    ended = box.run("exec", "box", "-c", "main", "--", "sh", "-c", "echo out; echo err >&2")
    assert (ended.code, ended.out) == (0, "out\n")
    assert ended.err == "err\n"


@pytest.mark.parametrize("code", [1, 3, 127])
def test_the_exit_code_is_handed_on(box: Kubectl, code: int) -> None:
    ended = box.run("exec", "box", "-c", "main", "--", "sh", "-c", f"exit {code}")
    assert ended.code == code
    assert f"command terminated with exit code {code}" in ended.err


def test_a_program_that_is_not_there(box: Kubectl) -> None:
    ended = box.run("exec", "box", "-c", "main", "--", "no-such-program")
    assert ended.code != 0
    assert "no-such-program" in ended.err


def test_standard_input_goes_in_and_ends(box: Kubectl) -> None:
    text = "a line\n" * 10_000
    ended = box.run("exec", "-i", "box", "-c", "main", "--", "wc", "-c", stdin=text)
    assert int(ended.out) == len(text)


def test_a_terminal_is_a_terminal(box: Kubectl) -> None:
    ours, theirs = pty.openpty()
    try:
        command = ("exec", "-it", "box", "-c", "main", "--", "sh", "-c", "test -t 0 && echo yes")
        with box.start(*command, stdin=theirs) as running:
            assert running.ends() == 0
            assert "yes\r\n" in running.output.read_bytes().decode()
    finally:
        os.close(ours)
        os.close(theirs)


def test_containers_have_their_own_directories(box: Kubectl) -> None:
    box("exec", "box", "-c", "main", "--", "touch", "/tmp/mine")
    ended = box.run("exec", "box", "-c", "other", "--", "ls", "/tmp")
    assert "mine" not in ended.out


def test_a_default_container_is_named(box: Kubectl) -> None:
    ended = box.run("exec", "box", "--", "true")
    assert 'Defaulted container "main" out of: main, other' in ended.err


def test_a_pod_or_container_that_is_not_there(box: Kubectl) -> None:
    assert 'pods "nobody" not found' in box.refused("exec", "nobody", "--", "true")
    said = box.refused("exec", "box", "-c", "nobody", "--", "true")
    assert (
        "container nobody not found in pod box" in said or "container nobody is not valid" in said
    )


def test_exec_is_a_right_of_its_own(box: Kubectl) -> None:
    box("create", "rolebinding", "view", "--clusterrole=view", "--user=ann")
    said = box.refused("exec", "box", "--as=ann", "--", "true")
    assert 'cannot create resource "pods/exec"' in said or 'cannot get resource "pods/exec"' in said


def test_files_are_copied_both_ways(box: Kubectl) -> None:
    folder = box.folder / "tree"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "data").write_bytes(bytes(range(256)) * 4096)
    (folder / "text").write_text("hello\n")
    box("cp", "tree", "box:/tmp/tree", "-c", "main")
    counted = box("exec", "box", "-c", "main", "--", "wc", "-c", "/tmp/tree/deep/data")
    assert counted.split()[0] == str(256 * 4096)
    box("cp", "box:/tmp/tree", "back", "-c", "main")
    assert (box.folder / "back" / "deep" / "data").read_bytes() == bytes(range(256)) * 4096
    assert (box.folder / "back" / "text").read_text() == "hello\n"


def test_attach_sees_what_comes_and_sends_what_is_typed(live: Kubectl) -> None:
    script = "while read line; do echo got $line; done"
    live.apply(pod("echo", shell(script, stdin=True)))
    live.wait("condition=Ready", "pod/echo")
    with live.start("attach", "-i", "echo", stdin=subprocess.PIPE) as attached:
        assert attached.process.stdin is not None
        attached.process.stdin.write(b"hello\n")
        attached.process.stdin.flush()
        attached.shows("got hello")
    eventually(lambda: "got hello" in live("logs", "echo"))


def test_run_attaches_and_cleans_up(live: Kubectl) -> None:
    command = ("run", "once", "--image=busybox", "--restart=Never", "--rm", "-i", "--quiet")
    out = live(*command, "--", "sh", "-c", "read x; echo $x back", stdin="there\n")
    assert out.startswith("there back\n")
    assert live.names("pods") == []


def test_a_port_is_forwarded_to_a_pod(live: Kubectl) -> None:
    live.apply(pod("web", container(ports=[{"containerPort": 80}])))
    live.wait("condition=Ready", "pod/web")
    with live.start("port-forward", "pod/web", ":80") as forwarding:
        port = forwarded_port(forwarding)
        assert "nginx" in fetch(port)
        assert "nginx" in fetch(port)


def test_a_port_is_forwarded_to_a_service_and_a_deployment(live: Kubectl) -> None:
    live("create", "deployment", "web", "--image=nginx", "--port=80")
    live("expose", "deployment", "web", "--port=8080", "--target-port=80")
    live("rollout", "status", "deployment/web")
    for what in ("service/web", "deployment/web"):
        with live.start("port-forward", what, f":{8080 if 'service' in what else 80}") as running:
            assert "nginx" in fetch(forwarded_port(running))


def test_a_port_that_nobody_listens_on(live: Kubectl) -> None:
    live.apply(pod("web", container(ports=[{"containerPort": 80}])))
    live.wait("condition=Ready", "pod/web")
    with live.start("port-forward", "pod/web", ":81") as forwarding:
        port = forwarded_port(forwarding)
        with pytest.raises(OSError, match=r"reset|closed|Remote"):
            fetch(port)
        forwarding.shows("error forwarding port 81 to pod")


def test_an_ephemeral_container_looks_inside(live: Kubectl) -> None:
    live.apply(pod("web", shell("sleep 1000")))
    live.wait("condition=Ready", "pod/web")
    flags = ("--image=busybox", "--container=look", "--attach=false")
    live("debug", "web", *flags, "--", "sh", "-c", "echo looking; sleep 1000")
    state = ".status.ephemeralContainerStatuses[0].state.running.startedAt"
    eventually(lambda: live.field(state, "pod", "web"))
    eventually(lambda: live("logs", "web", "-c", "look") == "looking\n")
    assert live("exec", "web", "-c", "look", "--", "echo", "hi") == "hi\n"


def test_debug_attaches(live: Kubectl) -> None:
    live.apply(pod("web", shell("sleep 1000")))
    live.wait("condition=Ready", "pod/web")
    command = ("debug", "web", "-i", "--image=busybox", "--quiet")
    ended = live.run(*command, "--", "sh", "-c", "read x; echo $x back", stdin="there\n")
    assert "there back" in ended.out + ended.err


def test_a_copy_of_a_pod_is_debugged(live: Kubectl) -> None:
    live.apply(pod("web", shell("exit 1")))
    flags = ("--copy-to=copy", "--container=main", "--attach=false")
    live("debug", "web", *flags, "--", "sleep", "1000")
    live.wait("condition=Ready", "pod/copy")
    assert live("exec", "copy", "--", "echo", "hi") == "hi\n"


def test_a_node_is_debugged(live: Kubectl) -> None:
    node = live.names("nodes", "-l", "disk=ssd")[0]
    said = live.run(
        "debug", f"node/{node}", "--image=busybox", "--attach=false", "--profile=general",
        "--", "sleep", "1000",
    )  # fmt: skip
    assert said.code == 0, said.err
    name = live.names("pods")[0]
    assert name.startswith(f"node-debugger-{node}")
    live.wait("condition=Ready", f"pod/{name}")
    assert live.field(".spec.nodeName", "pod", name) == node
    live("exec", name, "--", "true")


def test_a_proxy_speaks_for_its_user(box: Kubectl) -> None:
    with box.start("proxy", "--port=0") as proxy:
        found = re.search(r"127\.0\.0\.1:(\d+)", proxy.shows("Starting to serve on"))
        assert found
        path = f"/api/v1/namespaces/{box.namespace}/pods/box"
        assert json.loads(fetch(int(found[1]), path))["metadata"]["name"] == "box"
