"""What commands share: how they find the cluster, what they say when it fails, and log lines."""

import io
import json
import logging
import socket
from pathlib import Path

import pytest
from aiohttp import web
from click.testing import CliRunner, Result

from gpupool.cli.main import gpupool
from gpupool.cli.programs import log_to_stderr
from gpupool.health import Address, CannotListen, serving
from gpupool.local.cluster_setup import Prepared, Wish, set_up_directory
from gpupool.local.home import ClusterDirectory, Home
from localkube.data_directory import Lock


def logged(monkeypatch: pytest.MonkeyPatch, **fields: object) -> str:
    output = io.StringIO()
    monkeypatch.setattr("sys.stderr", output)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    log_to_stderr()
    logging.getLogger("a").warning("pod bound", extra=fields)
    return output.getvalue()


def test_fields_follow_the_event(monkeypatch: pytest.MonkeyPatch) -> None:
    line = logged(monkeypatch, pod="x", node="y")
    assert line.endswith(" WARNING a: pod bound pod=x node=y\n")


def test_tokens_are_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "sekret" not in logged(monkeypatch, header="Bearer sekret")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(gpupool, arguments, catch_exceptions=False)


@pytest.fixture
def nothing_named(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """An environment that names no cluster."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return home


def test_the_one_running_cluster_is_found(nothing_named: Home) -> None:
    assert "Or start a local cluster: gpupool up." in run("gpu", "list").output
    prepared = set_up_directory(nothing_named, Wish(name="a", port=0))
    assert isinstance(prepared, Prepared)
    prepared.cluster.kubeconfig.write_text(kubeconfig_of("https://127.0.0.1:1"))
    with Lock(prepared.cluster.path):
        assert "nothing answers at 127.0.0.1:1" in run("gpu", "list").output


def test_a_kubeconfig_that_does_not_exist_does_not_lead_to_another_cluster(
    nothing_named: Home, cluster: ClusterDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.kubeconfig.write_text(kubeconfig_of("https://127.0.0.1:1"))
    monkeypatch.setenv("KUBECONFIG", "/no/such/file")
    with Lock(cluster.path):
        assert "There is no kubeconfig at /no/such/file" in run("gpu", "list").output


def test_commands_of_local_clusters_use_the_one_that_kubeconfig_names(
    nothing_named: Home, cluster: ClusterDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = set_up_directory(nothing_named, Wish(name="b", port=0))
    assert isinstance(prepared, Prepared)
    monkeypatch.setenv("KUBECONFIG", f"/no/such/file:{prepared.cluster.kubeconfig}")
    assert "Name:        b\n" in run("status").output
    assert run("down").output == 'Cluster "b" is not running.\n'
    with Lock(cluster.path):  # it runs
        assert "Name:        b\n" in run("status").output
    assert f"Name:        {cluster.name}\n" in run("status", "--name", cluster.name).output


def test_the_console_does_not_start_without_its_server(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(kubeconfig_of("https://127.0.0.1:1"))
    result = run("console", "--kubeconfig", str(file))
    assert result.exit_code == 1
    assert "nothing answers at 127.0.0.1:1 (Connection refused)" in result.output


async def test_an_address_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=rf"Cannot listen on 127.0.0.1:{port}: Address"):
            async with serving(web.Application(), Address("127.0.0.1", port)):
                pass


def kubeconfig_of(server: str) -> str:
    return json.dumps(
        {
            "clusters": [{"name": "a", "cluster": {"server": server}}],
            "contexts": [{"name": "a", "context": {"cluster": "a"}}],
            "current-context": "a",
        }
    )
