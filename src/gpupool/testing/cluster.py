"""Cluster: a local cluster for the duration of a test, in its own process and directory.

It is the server that `gpupool up` starts, on any free port. It ends with the `with` block, and also
when the process of the test is killed (server.py); its directory is then deleted.
"""

import asyncio
import json
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from gpupool.local.pool_readiness import pools_when_ready
from gpupool.testing.server import ClusterFailed, Server, start_server
from localkube.data_directory import make_data_directory
from localkube.kubectl import run_kubectl

_NAME = "test"
_NODES_LIMIT_S = 60.0
_HEAD = {"apiVersion": "gpupool.io/v1alpha1", "kind": "Cluster"}


class Cluster:
    """A local cluster: `with Cluster() as cluster`, or `async with`.

    `config` is a cluster file, or the same as a mapping; `pools` is short for a cluster file with
    these pools in it. Without either it is the default cluster.
    """

    def __init__(
        self,
        *,
        pools: Sequence[Mapping[str, Any]] | None = None,
        config: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    ) -> None:
        if pools is not None and config is not None:
            raise TypeError("give pools or config, not both")
        self._config = {"pools": list(pools)} if pools is not None else config
        self._home = Path(tempfile.gettempdir()).absolute() / f"gpupool-{secrets.token_hex(8)}"
        self._keep = self._home / "keep"
        self._server: Server | None = None
        self.port = 0

    @property
    def directory(self) -> Path:
        """The data directory."""
        return self._home / "clusters" / _NAME

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca(self) -> Path:
        """The file with the certificate of the cluster's authority, as PEM."""
        return self.directory / "ca.crt"

    @property
    def token(self) -> str:
        """The administrator's token."""
        config = yaml.safe_load(self.kubeconfig.read_text(encoding="utf-8"))
        token: str = config["users"][0]["user"]["token"]
        return token

    @property
    def log(self) -> Path:
        return self._home / "server.log"

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl prints. Raises CalledProcessError, with stderr, when it fails."""
        return run_kubectl(self.kubeconfig, *arguments, stdin=stdin)

    def start(self) -> None:
        """Start the server and wait for its nodes. After `stop` or `kill`, the cluster has the
        objects it had before. Raises ClusterFailed; a first start that fails leaves no files."""
        first = not self.port
        make_data_directory(self._home)
        self._keep.unlink(missing_ok=True)
        try:
            self._server = start_server(self._home, self.log, self._arguments())
            self.port = self._server.port
            self._wait_for_nodes()
        except BaseException:
            if first:
                self.port = 0
                self.close()
            else:
                self.stop()
            raise

    def stop(self) -> None:
        """Stop the server cleanly; its data stays."""
        if self._server:
            # The server deletes the home when it ends, unless this file is there (`cli/up.py`).
            # After SIGKILL it cannot delete anything, so that `kill` needs no such file.
            self._keep.touch()
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the server with SIGKILL, as a power cut would; its data stays."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """Stop the server and delete its data."""
        self.stop()
        shutil.rmtree(self._home, ignore_errors=True)

    def _end(self, number: signal.Signals) -> None:
        if self._server:
            self._server.end(number)
            self._server = None

    def _arguments(self) -> list[str]:
        # Port 0 (any) at the first start, then always the same: tests keep clients with its
        # address.
        arguments = ["--name", _NAME, "--port", str(self.port)]
        arguments += ["--delete-home-unless", str(self._keep)]
        if self._config is not None:
            arguments += ["--config", str(self._config_file(self._config))]
        return arguments

    def _wait_for_nodes(self) -> None:
        pools = pools_when_ready(self.directory, self.port, patience_s=_NODES_LIMIT_S)
        if pools is None:
            raise ClusterFailed("The server was ready, and then could not be asked for its pools.")
        if pools.waiting:
            waiting = ", ".join(pools.waiting)
            raise ClusterFailed(
                f"After {_NODES_LIMIT_S:.0f} s there were pools with nodes not ready: {waiting}."
            )

    def _config_file(self, config: str | os.PathLike[str] | Mapping[str, Any]) -> Path:
        if not isinstance(config, Mapping):
            return Path(config).absolute()
        path = self._home / "cluster.yaml"
        path.write_text(json.dumps({**_HEAD, **config}), encoding="utf-8")  # JSON is YAML too
        return path

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.close)
