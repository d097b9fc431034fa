"""Cluster: a real local cluster for the length of a test, in a process and directory of its own.

The same server that `gpupool up` starts, on any free port. It ends with the `with` block, and
also when the process of the test is killed (server.py).
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from gpupool.testing.server import Server, start_server

_NAME = "test"
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
        config: Path | Mapping[str, Any] | None = None,
    ) -> None:
        if pools is not None and config is not None:
            raise TypeError("give pools or config, not both")
        self._config = {"pools": list(pools)} if pools is not None else config
        self._home = Path(tempfile.mkdtemp(prefix="gpupool-"))
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
        """The certificate, as PEM, that vouches for the server's."""
        return self.directory / "ca.crt"

    @property
    def token(self) -> str:
        """The administrator's."""
        config = yaml.safe_load(self.kubeconfig.read_text(encoding="utf-8"))
        token: str = config["users"][0]["user"]["token"]
        return token

    @property
    def log(self) -> Path:
        return self._home / "server.log"

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl prints. Raises CalledProcessError, with stderr, when it says no."""
        program = shutil.which("kubectl")
        if program is None:
            raise FileNotFoundError("kubectl is not on the PATH")
        done = subprocess.run(
            [program, *arguments],
            input=stdin,
            env=os.environ | {"KUBECONFIG": str(self.kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            error = subprocess.CalledProcessError(
                done.returncode, ["kubectl", *arguments], done.stdout, done.stderr
            )
            error.add_note(done.stderr)
            raise error
        return done.stdout

    def start(self) -> None:
        """Start the server; after `stop` or `kill` with everything that was in it."""
        arguments = ["--name", _NAME, "--port", str(self.port)]
        if self._config is not None:
            arguments += ["--config", str(self._config_file(self._config))]
        self._server = start_server(self._home, self.log, arguments)
        self.port = self._server.port

    def stop(self) -> None:
        """Stop the server cleanly; its data stays."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the server as a power cut would; its data stays."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """Stop the server and delete its data."""
        self.stop()
        shutil.rmtree(self._home, ignore_errors=True)

    def _end(self, number: signal.Signals) -> None:
        if self._server:
            self._server.end(number)
            self._server = None

    def _config_file(self, config: Path | Mapping[str, Any]) -> Path:
        if isinstance(config, Path):
            return config.absolute()
        path = self._home / "cluster.yaml"
        path.write_text(json.dumps({**_HEAD, **config}), encoding="utf-8")  # JSON is YAML too
        return path

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
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
