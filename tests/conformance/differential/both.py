"""Both servers, and a script said to each of them.

The real one has its controllers and its scheduler and no kubelets; the local cluster has no node
pools. So on both sides nothing runs, and nodes and the states of pods are what scripts write.
"""

import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gpupool.testing import Cluster
from testbed.controlplane import ControlPlane
from tests.conformance.differential.catalogue import Work
from tests.conformance.differential.comparable import comparable
from tests.conformance.differential.programs import answer, connected
from tests.conformance.differential.script import Script, Step, namespace_of
from tests.e2e.kubectl import PATIENCE_S, Ended, Kubectl, Running, eventually

_ADMIN = "kubernetes-admin"  # as the local cluster calls its own
_CONTROLLERS = (
    # Nobody renews what scripts write about nodes.
    "--node-monitor-grace-period=1h",
    "--node-startup-grace-period=1h",
)


@dataclass(frozen=True, slots=True)
class Answers:
    """What both printed at one step, comparable."""

    step: str
    real: str
    ours: str

    @property
    def agree(self) -> bool:
        return self.real == self.ours


@dataclass(frozen=True, slots=True)
class Servers:
    real: Kubectl
    ours: Kubectl

    def compare(self, work: Work) -> list[Answers]:
        name = namespace_of(work.name)
        with ThreadPoolExecutor(2) as pool:
            real, ours = pool.map(
                lambda kubectl: _said(kubectl.within(name), work), (self.real, self.ours)
            )
        steps = zip(work.compared, real, ours, strict=True)
        return [Answers(step, one, other) for step, one, other in steps]


@contextmanager
def servers(program: Path, folder: Path) -> Iterator[Servers]:
    """Both, each with a folder for its kubectl."""
    with ExitStack() as running:
        plane = running.enter_context(
            ControlPlane(
                controllers=True,
                scheduler=True,
                users={_ADMIN: "system:masters"},
                flags={"kube-controller-manager": _CONTROLLERS},
            )
        )
        local = running.enter_context(Cluster(pools=[]))
        homes = {name: folder / name for name in ("real", "ours")}
        for home in homes.values():
            home.mkdir()
        kubeconfig = homes["real"] / "kubeconfig"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(plane.kubeconfig_of(_ADMIN))
        yield Servers(
            Kubectl(program, kubeconfig, homes["real"]),
            Kubectl(program, local.kubeconfig, homes["ours"]),
        )


def _said(kubectl: Kubectl, work: Work) -> list[str]:
    """The answers to what is compared, in a fresh namespace."""
    kubectl.within("default")("create", "namespace", kubectl.namespace)
    made = ("get", "serviceaccount/default", "configmap/kube-root-ca.crt")
    eventually(lambda: kubectl.run(*made).code == 0)
    if isinstance(work, Script):
        return _kubectl_says(kubectl, work.steps)
    with connected(kubectl.kubeconfig, kubectl.namespace) as client:
        return [comparable(answer(client, call)) for call in work.calls.values()]


def _kubectl_says(kubectl: Kubectl, steps: Sequence[Step]) -> list[str]:
    answers: list[str] = []
    with ExitStack() as started:
        running: list[Running] = []
        for step in steps:
            if step.verb == "file":
                (kubectl.folder / step.arguments[0]).write_text(step.stdin)
            elif step.verb == "start":
                running.append(started.enter_context(kubectl.start(*step.arguments)))
                with suppress(AssertionError):  # what it shows is compared when it ends
                    running[-1].shows(step.until)
            elif step.verb == "ends":
                answers.append(_ended(running.pop(), step.arguments[0]))
            else:
                answers.append(_shown(_run(kubectl, step), kubectl.folder))
    return answers


def _ended(running: Running, text: str) -> str:
    try:
        return comparable(running.shows(text))
    except AssertionError:
        return f"{comparable(running.text())}\nnever: {text}"


def _run(kubectl: Kubectl, step: Step) -> Ended:
    def once() -> Ended:
        env = {"KUBE_EDITOR": "true", **dict(step.env)}
        try:
            return kubectl.run(*step.arguments, stdin=step.stdin, env=env)
        except subprocess.TimeoutExpired:
            return Ended(-1, "", "does not end\n")

    ended = once()
    if step.until:

        def met() -> bool:
            nonlocal ended
            ended = once()
            return step.until in ended.out + ended.err

        try:
            eventually(met, PATIENCE_S)
        except AssertionError:
            return Ended(ended.code, ended.out, f"{ended.err}never: {step.until}\n")
    return ended


def _shown(ended: Ended, folder: Path) -> str:
    parts = [comparable(text.replace(str(folder), "<folder>")) for text in (ended.out, ended.err)]
    return "\n".join([*(part for part in parts if part), f"[exit code {ended.code}]"])
