"""Schedulers in child processes, with an API server in this process."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from kubeclient.client import Kube
from kubeclient.errors import NotFound
from kubeclient.resources import LEASES
from localkube import kubeconfig
from localkube.apiserver.security import certificates
from localkube.apiserver.security.identities import ADMIN
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.server import build
from tests.conformance.api_server import NoNodes


@contextlib.asynccontextmanager
async def served(directory: Path) -> AsyncIterator[tuple[Kube, Path]]:
    """A client, and the kubeconfig for the child processes."""
    made, tokens = certificates.ensure(directory), StaticTokens()
    token = tokens.issue(ADMIN)
    server = build(directory, made, tokens, NoNodes())
    try:
        http = await server.listen(0)
        try:
            await server.bootstrap(http.port)
            file = directory / "kubeconfig"
            url = f"https://127.0.0.1:{http.port}"
            kubeconfig.write(file, kubeconfig.Kubeconfig("test", url, made.ca_pem, token))
            yield server.client(ADMIN), file
        finally:
            await http.close(grace_s=0.5)
    finally:
        server.close()


class Process:
    def __init__(self, *arguments: str, log: Path) -> None:
        with log.open("wb") as output:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "gpupool", *arguments], stderr=output, stdout=output
            )
        self.log = log

    def send(self, number: signal.Signals) -> None:
        self._child.send_signal(number)

    def end(self) -> None:
        """Works for a process that was stopped, too."""
        self._child.kill()
        self._child.wait()


@contextlib.contextmanager
def schedulers(config: Path, *names: str) -> Iterator[list[Process]]:
    """One process for each name; a name may be given twice."""
    with contextlib.ExitStack() as stack:
        started = []
        for number, name in enumerate(names):
            flags = [f"--kubeconfig={config}", f"--scheduler-name={name}", "--health-address="]
            log = config.with_name(f"scheduler-{number}.log")
            process = Process("scheduler", *flags, "--policy=best-fit", log=log)
            stack.callback(process.end)
            started.append(process)
        yield started


async def leader(kube: Kube) -> str:
    """Empty: there is no leader."""
    try:
        lease = await kube.get(LEASES, "gpupool-scheduler", "kube-system")
    except NotFound:
        return ""
    return str(lease["spec"].get("holderIdentity") or "")
