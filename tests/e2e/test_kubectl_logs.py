"""kubectl logs of containers that are processes."""

import re

import pytest

from tests.e2e.kubectl import Kubectl, eventually
from tests.e2e.objects import LABELS, container, deployment, pod, shell, template

pytestmark = pytest.mark.kubectl

THREE = "echo one; echo two; echo three >&2; sleep 1000"


def test_of_a_pod(live: Kubectl) -> None:
    live.apply(pod("web", shell(THREE)))
    live.wait("condition=Ready", "pod/web")
    eventually(lambda: sorted(live("logs", "web").split()) == ["one", "three", "two"])


def test_the_last_lines_and_bytes(live: Kubectl) -> None:
    live.apply(pod("web", shell("for i in 1 2 3 4 5; do echo line $i; done; sleep 1000")))
    eventually(lambda: "line 5" in live("logs", "web", "--ignore-errors"))
    assert live("logs", "web", "--tail=2") == "line 4\nline 5\n"
    assert live("logs", "web", "--limit-bytes=10") == "line 1\nlin"


def test_since_and_timestamps(live: Kubectl) -> None:
    live.apply(pod("web", shell(THREE)))
    live.wait("condition=Ready", "pod/web")
    eventually(lambda: len(live("logs", "web").split()) == 3)
    stamped = live("logs", "web", "--timestamps").splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z \w+$", line) for line in stamped)
    assert live("logs", "web", "--since=1h") != ""
    assert live("logs", "web", "--since-time=2099-01-01T00:00:00Z") == ""


def test_followed_until_the_end(live: Kubectl) -> None:
    script = "echo begin; until test -e /tmp/go; do sleep 0.05; done; echo end"
    live.apply(pod("web", shell(script), restartPolicy="Never"))
    live.wait("condition=Ready", "pod/web")
    with live.start("logs", "-f", "web") as following:
        assert following.shows("begin") == "begin\n"
        live("exec", "web", "--", "touch", "/tmp/go")
        assert following.ends() == 0
        assert following.text() == "begin\nend\n"


def test_of_one_container_among_several(live: Kubectl) -> None:
    live.apply(pod("web", shell("echo A; sleep 1000", "a"), shell("echo B; sleep 1000", "b")))
    live.wait("condition=Ready", "pod/web")
    eventually(lambda: live("logs", "web", "-c", "b") == "B\n")
    ended = live.run("logs", "web")
    assert ended.out == "A\n"
    assert 'Defaulted container "a" out of: a, b' in ended.err
    both = live("logs", "web", "--all-containers", "--prefix").splitlines()
    assert sorted(both) == ["[pod/web/a] A", "[pod/web/b] B"]
    said = live.refused("logs", "web", "-c", "c")
    assert "container c is not valid for pod web" in said


def test_of_a_deployment_and_of_a_selector(live: Kubectl) -> None:
    live.apply(deployment("web", 2, template=template(shell("echo hello; sleep 1000"))))
    live("rollout", "status", "deployment/web")
    eventually(lambda: live("logs", "deployment/web") == "hello\n")
    eventually(lambda: live("logs", "-l", "app=web") == "hello\nhello\n")


def test_of_the_run_before(live: Kubectl) -> None:
    script = "if test -e /data/second; then echo second; sleep 1000; fi; touch /data/second; "
    script += "echo first; exit 3"
    mounted = shell(script, volumeMounts=[{"name": "data", "mountPath": "/data"}])
    live.apply(pod("web", mounted, volumes=[{"name": "data", "emptyDir": {}}]))
    eventually(lambda: live("logs", "web", "--ignore-errors") == "second\n")
    assert live("logs", "web", "--previous") == "first\n"
    state = live.json("get", "pod", "web")["status"]["containerStatuses"][0]
    assert state["restartCount"] == 1
    assert state["lastState"]["terminated"]["exitCode"] == 3


def test_there_is_no_run_before_the_first(live: Kubectl) -> None:
    live.apply(pod("web", shell(THREE)))
    live.wait("condition=Ready", "pod/web")
    said = live.refused("logs", "web", "--previous")
    assert 'previous terminated container "main" in pod "web" not found' in said


def test_of_an_init_container(live: Kubectl) -> None:
    first = shell("echo prepared", "first")
    live.apply(pod("web", shell("sleep 1000"), initContainers=[first]))
    live.wait("condition=Ready", "pod/web")
    assert live("logs", "web", "-c", "first") == "prepared\n"


def test_of_a_finished_pod(live: Kubectl) -> None:
    live.apply(pod("web", shell("echo done; exit 4"), restartPolicy="Never"))
    live.wait("jsonpath={.status.phase}=Failed", "pod/web")
    assert live("logs", "web") == "done\n"
    assert "Error" in live("get", "pod", "web")


def test_of_a_pod_that_has_not_started(live: Kubectl) -> None:
    live.apply(pod("big", container(resources={"requests": {"cpu": "500"}})))
    live.wait("condition=PodScheduled=False", "pod/big")
    assert live("logs", "big", "--ignore-errors") == ""


def test_of_a_job(live: Kubectl) -> None:
    live("create", "job", "once", "--image=busybox", "--", "echo", "worked")
    live.wait("condition=Complete", "job/once")
    assert live("logs", "job/once") == "worked\n"
    assert live("logs", "-l", "job-name=once", "--tail=1") == "worked\n"


def test_what_a_pod_knows_of_itself(live: Kubectl) -> None:
    names = {"NODE": "spec.nodeName", "POD": "metadata.name", "NS": "metadata.namespace"}
    env = [
        {"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}} for key, path in names.items()
    ]
    main = shell("echo $POD $NS $NODE $(hostname)", env=env)
    live.apply(pod("web", main, restartPolicy="Never", labels=LABELS))
    live.wait("jsonpath={.status.phase}=Succeeded", "pod/web")
    node = live.field(".spec.nodeName", "pod", "web")
    assert live("logs", "web") == f"web {live.namespace} {node} web\n"
