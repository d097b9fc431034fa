"""Both servers, and a script said to each of them.

The real one has its controllers and its scheduler and no kubelets; the local cluster has no node
pools. So on both sides nothing runs, and nodes and the states of pods are what scripts write.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpupool.testing import Cluster
from testbed.controlplane import ControlPlane
from tests.conformance.differential.comparable import comparable
from tests.conformance.differential.script import Script, Step
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

    step: Step
    real: str
    ours: str

    @property
    def agree(self) -> bool:
        return self.real == self.ours


@dataclass(frozen=True, slots=True)
class Servers:
    real: Kubectl
    ours: Kubectl

    def compare(self, script: Script) -> list[Answers]:
        with ThreadPoolExecutor(2) as pool:
            real, ours = pool.map(
                lambda kubectl: said(kubectl.within(script.namespace), script.steps),
                (self.real, self.ours),
            )
        steps = zip(script.compared, real, ours, strict=True)
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


def said(kubectl: Kubectl, steps: Sequence[Step]) -> list[str]:
    """The answers to what is compared, in a fresh namespace."""
    kubectl.within("default")("create", "namespace", kubectl.namespace)
    made = ("get", "serviceaccount/default", "configmap/kube-root-ca.crt")
    eventually(lambda: kubectl.run(*made).code == 0)
    answers: list[str] = []
    with ExitStack() as started:
        running: list[Running] = []
        for step in steps:
            if step.verb == "file":
                (kubectl.folder / step.arguments[0]).write_text(step.stdin)
            elif step.verb == "start":
                running.append(started.enter_context(kubectl.start(*step.arguments)))
            elif step.verb == "ends":
                answers.append(comparable(running.pop().shows(step.arguments[0])))
            else:
                answers.append(_shown(_run(kubectl, step), kubectl.folder))
    return answers


def _run(kubectl: Kubectl, step: Step) -> Ended:
    def once() -> Ended:
        return kubectl.run(*step.arguments, stdin=step.stdin, env=dict(step.env))

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
