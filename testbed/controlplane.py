"""A real Kubernetes control plane on the loopback: etcd and kube-apiserver, more on request.

    with ControlPlane() as plane:
        subprocess.run(["kubectl", "--kubeconfig", plane.kubeconfig, "get", "namespaces"])

Everything lives in one temporary folder and ends with the context. There is no kubelet.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import secrets
import shutil
import signal
import ssl
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol

from testbed import build, certificates
from testbed.processes import Child, answers, free_ports, wait_until

_START_SECONDS = 60.0
# Without a token one may look at the health and the version; everything else is 401. By default
# the server would treat such a request as that of a user who may do nothing, and answer 403.
_AUTHENTICATION = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AuthenticationConfiguration",
    "anonymous": {
        "enabled": True,
        "conditions": [{"path": path} for path in ("/healthz", "/livez", "/readyz", "/version")],
    },
}


class Way(Protocol):
    """To an API server: where it is, and whose certificate it shows."""

    @property
    def url(self) -> str: ...
    @property
    def ca_file(self) -> Path: ...


class ControlPlane:
    """Starts on entering, stops on leaving. `url`, `token`, `ca_file` and `kubeconfig` tell how
    to reach it; the token is that of a member of system:masters."""

    def __init__(
        self,
        *,
        controllers: bool = False,
        scheduler: bool = False,
        users: Mapping[str, str] | None = None,
        flags: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """`users` may use it too, each with its group; `kubeconfig_of` has their credentials.
        `flags` adds command-line flags by program name; a later flag wins over ours."""
        self._optional = [
            name
            for name, wanted in (
                ("kube-controller-manager", controllers),
                ("kube-scheduler", scheduler),
            )
            if wanted
        ]
        self._users = {
            "admin": "system:masters",
            **(users or {}),
        }
        self._flags = flags or {}
        self._children: list[Child] = []
        self._commands: dict[str, list[str]] = {}
        self._tokens = {user: secrets.token_urlsafe(24) for user in self._users}
        self.url = ""
        self.folder = Path()

    @property
    def token(self) -> str:
        return self._tokens["admin"]

    def kubeconfig_of(self, user: str, token: str = "", way: Way | None = None) -> str:
        """As text: JSON, which is YAML too. `token` where that user is none of `users`; `way` where
        it does not lead straight to the server."""
        way = way or self
        ca = base64.b64encode(way.ca_file.read_bytes()).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "testbed",
            "clusters": [
                {
                    "name": "testbed",
                    "cluster": {"server": way.url, "certificate-authority-data": ca},
                }
            ],
            "users": [{"name": user, "user": {"token": token or self._tokens[user]}}],
            "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": user}}],
        }
        return json.dumps(config, indent=1)

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(child.pid for child in self._children)

    def __enter__(self) -> ControlPlane:
        # Before anything is started, so that a missing program leaves nothing behind.
        programs = {
            name: build.ensure(name) for name in ("etcd", "kube-apiserver", *self._optional)
        }
        self.folder = Path(tempfile.mkdtemp(prefix="gpupool-testbed-"))
        try:
            self._start(programs)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        while self._children:
            self._children.pop().stop()
        if self.folder != Path():  # it was started
            shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, programs: Mapping[str, Path]) -> None:
        client, peer, secure = free_ports(3)
        etcd_url, self.url = f"http://127.0.0.1:{client}", f"https://127.0.0.1:{secure}"
        certificates.write_all(self.folder)
        tokens = self.folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(
            "".join(
                f'{self._tokens[user]},{user},{user},"{group}"\n'
                for user, group in self._users.items()
            )
        )
        (self.folder / "authentication.json").write_text(json.dumps(_AUTHENTICATION))
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(self.kubeconfig_of("admin"))

        etcd = self._spawn(programs["etcd"], _etcd_flags(self.folder, etcd_url, peer))
        wait_until(lambda: answers(f"{etcd_url}/health"), etcd, _START_SECONDS)
        apiserver = self._spawn(
            programs["kube-apiserver"], _apiserver_flags(self.folder, etcd_url, secure)
        )
        self._wait_ready(apiserver)
        for name in self._optional:
            self._spawn(programs[name], _client_flags(self.folder, name))

    def _wait_ready(self, apiserver: Child) -> None:
        trust = ssl.create_default_context(cafile=str(self.ca_file))
        wait_until(lambda: answers(f"{self.url}/readyz", trust), apiserver, _START_SECONDS)

    def restart_apiserver(self) -> None:
        """Kills it, and returns when the next one answers at the same address."""
        (old,) = (child for child in self._children if child.name == "kube-apiserver")
        old.stop(patience=0.0)
        new = Child(old.name, self._commands[old.name], self.folder / "kube-apiserver.next.log")
        self._children[self._children.index(old)] = new
        self._wait_ready(new)

    def _spawn(self, program: Path, flags: Sequence[str]) -> Child:
        name = program.name
        self._commands[name] = [str(program), *flags, *self._flags.get(name, ())]
        child = Child(name, self._commands[name], self.folder / f"{name}.log")
        self._children.append(child)
        return child


def _etcd_flags(folder: Path, url: str, peer_port: int) -> list[str]:
    peer = f"http://127.0.0.1:{peer_port}"
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        # The data is thrown away anyway.
        "--unsafe-no-fsync",
    ]


def _apiserver_flags(folder: Path, etcd_url: str, port: int) -> list[str]:
    return [
        f"--etcd-servers={etcd_url}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        # A loopback address is not a legal endpoint of the Service `kubernetes`.
        "--endpoint-reconciler-type=none",
        f"--secure-port={port}",
        f"--tls-cert-file={folder / 'server.crt'}",
        f"--tls-private-key-file={folder / 'server.key'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        # How it reaches kubelets: by the address of a node, which trusts whom our CA vouches for.
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-client-certificate={folder / 'client.crt'}",
        f"--kubelet-client-key={folder / 'client.key'}",
        f"--authentication-config={folder / 'authentication.json'}",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={folder / 'sa.key'}",
        f"--service-account-signing-key-file={folder / 'sa.key'}",
        "--service-cluster-ip-range=10.0.0.0/16",
        # Nothing serves these addresses here, and some network of the machine may: webhooks of a
        # service go to its endpoints, of which there are none, and never to the address itself.
        "--enable-aggregator-routing=true",
        "--allow-privileged=true",
    ]


def _client_flags(folder: Path, name: str) -> list[str]:
    flags = [f"--kubeconfig={folder / 'kubeconfig'}", "--leader-elect=false", "--secure-port=0"]
    if name == "kube-controller-manager":
        flags += [
            f"--service-account-private-key-file={folder / 'sa.key'}",
            f"--root-ca-file={folder / 'ca.crt'}",
            f"--cluster-signing-cert-file={folder / 'ca.crt'}",
            f"--cluster-signing-key-file={folder / 'ca.key'}",
        ]
    return flags


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a real control plane until interrupted.")
    parser.add_argument("--controllers", action="store_true", help="kube-controller-manager too")
    parser.add_argument("--scheduler", action="store_true", help="kube-scheduler too")
    options = parser.parse_args()
    asked_to_stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked_to_stop.set())
    with ControlPlane(controllers=options.controllers, scheduler=options.scheduler) as plane:
        print(f"export KUBECONFIG={plane.kubeconfig}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            asked_to_stop.wait()


if __name__ == "__main__":
    main()
