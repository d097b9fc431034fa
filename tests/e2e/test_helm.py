"""helm on a cluster of ours: a chart's whole life."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpupool.testing import Cluster
from kubeclient.objects import Obj
from tests.e2e.api import call

pytestmark = pytest.mark.clients

Helm = Callable[..., str]


class HelmFailed(AssertionError):
    pass


@pytest.fixture(scope="session")
def helm_program() -> str:
    beside = Path(sys.executable).with_name("helm")
    program = str(beside) if beside.exists() else shutil.which("helm")
    if program is None:
        pytest.skip("NO HELM: nothing of helm was tested. It comes with the package helm-binary.")
    return program


@pytest.fixture
def helm(cluster: Cluster, namespace: str, helm_program: str, tmp_path: Path) -> Helm:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "KUBECONFIG": str(cluster.kubeconfig),
        "HELM_NAMESPACE": namespace,
    }

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [helm_program, *arguments],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if done.returncode:
            raise HelmFailed(f"helm {' '.join(arguments)}\n{done.stdout}{done.stderr}")
        return done.stdout

    run("create", "chart")
    return run


def releases(helm: Helm) -> list[Obj]:
    found: list[Obj] = json.loads(helm("list", "-o", "json"))
    return found


def replicas(cluster: Cluster, namespace: str, name: str) -> int:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    return int(call(cluster, "GET", path)[1]["status"].get("readyReplicas", 0))


def test_a_release_lives(helm: Helm, cluster: Cluster, namespace: str) -> None:
    said = helm("install", "web", "chart", "--wait", "--timeout=60s")
    assert "STATUS: deployed" in said
    assert [(r["name"], r["revision"], r["status"]) for r in releases(helm)] == [
        ("web", "1", "deployed")
    ]
    assert replicas(cluster, namespace, "web-chart") == 1
    helm("upgrade", "web", "chart", "--set", "replicaCount=2", "--wait", "--timeout=60s")
    assert replicas(cluster, namespace, "web-chart") == 2
    helm("rollback", "web", "1", "--wait", "--timeout=60s")
    history = json.loads(helm("history", "web", "-o", "json"))
    assert [(h["revision"], h["status"]) for h in history] == [
        (1, "superseded"),
        (2, "superseded"),
        (3, "deployed"),
    ]
    assert "replicaCount: 2" not in helm("get", "values", "web")
    helm("uninstall", "web", "--wait", "--timeout=60s")
    assert releases(helm) == []
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    assert call(cluster, "GET", path)[1]["items"] == []


def test_a_namespace_is_made_on_request(helm: Helm, cluster: Cluster, namespace: str) -> None:
    name = f"{namespace}-b"
    flags = ("--namespace", name, "--create-namespace", "--wait", "--timeout=60s")
    helm("install", "web", "chart", *flags)
    assert replicas(cluster, name, "web-chart") == 1
    call(cluster, "DELETE", f"/api/v1/namespaces/{name}")


def test_the_charts_own_test_passes(helm: Helm, tmp_path: Path) -> None:
    check = tmp_path / "chart" / "templates" / "tests" / "test-connection.yaml"
    text = check.read_text().replace("command: ['wget']", "command: ['echo', 'tried']")
    check.write_text(text)
    helm("install", "web", "chart", "--wait", "--timeout=60s")
    assert "Phase:          Succeeded" in helm("test", "web", "--timeout=60s")


def test_a_template_looks_things_up(helm: Helm, tmp_path: Path) -> None:
    found = '{{ (lookup "v1" "ServiceAccount" .Release.Namespace "default").metadata.name }}'
    template = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: found}}\ndata: {{a: {found}}}\n"
    (tmp_path / "chart" / "templates" / "found.yaml").write_text(template)
    shown = helm("template", "web", "chart", "--dry-run=server", "-s", "templates/found.yaml")
    assert "data: {a: default}" in shown


@pytest.mark.slow
def test_a_failed_upgrade_is_rolled_back(helm: Helm, cluster: Cluster, namespace: str) -> None:
    helm("install", "web", "chart", "--wait", "--timeout=60s")
    with pytest.raises(HelmFailed, match="rolled back"):
        helm(
            "upgrade", "web", "chart", "--atomic", "--timeout=3s",
            "--set", "resources.requests.cpu=500",
        )  # fmt: skip
    assert replicas(cluster, namespace, "web-chart") == 1
    assert releases(helm)[0]["status"] == "deployed"


def test_hooks_run_before_the_release(
    helm: Helm, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    job = """
apiVersion: batch/v1
kind: Job
metadata:
  name: before
  annotations: {helm.sh/hook: pre-install}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, command: [echo, ready]}]
"""
    (tmp_path / "chart" / "templates" / "before.yaml").write_text(job)
    helm("install", "web", "chart", "--wait", "--timeout=60s")
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs/before"
    assert call(cluster, "GET", path)[1]["status"]["succeeded"] == 1


def test_invalid_objects_are_refused(helm: Helm) -> None:
    with pytest.raises(HelmFailed, match=r"spec\.replicas"):
        helm("install", "web", "chart", "--set", "replicaCount=-1")
