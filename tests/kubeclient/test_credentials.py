"""Credentials from plain kubeconfigs, plugins and pods, on a real local cluster."""

import base64
import json
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpupool.testing import Cluster
from kubeclient.access import Access, NoAccess
from kubeclient.credentials import find_access
from kubeclient.https import connected
from kubeclient.kubeconfig import plain_access
from kubeclient.resources import NAMESPACES

NOWHERE = Path("/nowhere")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=[]) as running:
        yield running


def config(cluster: Cluster, user: dict[str, Any], **more: Any) -> dict[str, Any]:
    ca = base64.b64encode(cluster.ca.read_bytes()).decode()
    server = {"server": cluster.url, "certificate-authority-data": ca, **more}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": server}],
        "users": [{"name": "u", "user": user}],
    }


def write(path: Path, document: object) -> str:
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return str(path)


async def answers(access: Access) -> bool:
    async with connected(access, "test") as kube:
        return bool((await kube.get(NAMESPACES, "default"))["kind"] == "Namespace")


async def test_the_local_clusters_own_kubeconfig_is_plain(cluster: Cluster) -> None:
    access = plain_access(cluster.kubeconfig)
    assert access is not None
    assert await answers(access)


async def test_a_token_in_a_file_beside_the_kubeconfig_is_found(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(cluster.token + "\n")
    file = write(tmp_path / "config", config(cluster, {"tokenFile": "token"}))
    assert await answers(await find_access({}, kubeconfig=file))


async def test_a_plugins_token_is_used(cluster: Cluster, tmp_path: Path) -> None:
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": cluster.token},
    }
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(credential)}\nEND\n")
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    run = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}
    file = write(tmp_path / "config", config(cluster, {"exec": run}))
    assert plain_access(Path(file)) is None
    assert await answers(await find_access({}, kubeconfig=file))


async def test_inside_a_pod_the_service_account_is_used(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(cluster.ca.read_bytes())
    (tmp_path / "token").write_text(cluster.token)
    environ = {
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(cluster.port),
    }
    assert await answers(await find_access(environ, in_cluster=tmp_path))


async def test_a_renewed_token_is_read_again(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubeclient.access._REMEMBERED_S", 0.0)
    (tmp_path / "token").write_text("old")
    file = write(tmp_path / "config", config(cluster, {"tokenFile": "token"}))
    access = await find_access({}, kubeconfig=file)
    assert await access.authorization() == "Bearer old"
    (tmp_path / "token").write_text(cluster.token)
    assert await answers(access)


async def test_the_environments_kubeconfig_comes_before_the_homes(
    cluster: Cluster, tmp_path: Path
) -> None:
    environ = {"KUBECONFIG": str(cluster.kubeconfig), "HOME": str(tmp_path)}
    assert await answers(await find_access(environ, in_cluster=NOWHERE))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{", "not valid YAML"),
        ("clusters: []\ncontexts: []\ncurrent-context: x", 'no context "x"; it has none'),
    ],
)
async def test_a_bad_kubeconfig_is_an_error_with_a_message(
    tmp_path: Path, text: str, wanted: str
) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(NoAccess, match=wanted):
        await find_access({}, kubeconfig=str(file))


@pytest.mark.parametrize("text", ["", "text", "[]", "clusters: 3", "clusters: [3]\ncontexts: 7"])
async def test_what_is_no_kubeconfig_is_an_error_with_a_message(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(NoAccess, match="is not a kubeconfig"):
        await find_access({}, kubeconfig=str(file))


async def test_a_missing_kubeconfig_is_an_error_with_a_message(tmp_path: Path) -> None:
    with pytest.raises(NoAccess, match="Name one with --kubeconfig"):
        await find_access({"HOME": str(tmp_path)}, in_cluster=NOWHERE)


async def test_a_bad_ca_is_an_error_with_a_message(cluster: Cluster, tmp_path: Path) -> None:
    broken = {"certificate-authority-data": base64.b64encode(b"no PEM").decode()}
    file = write(tmp_path / "config", config(cluster, {"token": "t"}, **broken))
    with pytest.raises(NoAccess, match="certificates for the API server cannot be used"):
        await find_access({}, kubeconfig=file)


async def test_a_plugin_without_a_home_directory_is_an_error_with_a_message(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.delitem(sys.modules, "kubernetes_asyncio.config.kube_config", raising=False)
    run = {"apiVersion": "client.authentication.k8s.io/v1", "command": "plugin"}
    file = write(tmp_path / "config", config(cluster, {"exec": run}))
    with pytest.raises(NoAccess, match="set HOME"):
        await find_access({}, kubeconfig=file)
