"""gpupool on a real Kubernetes of this machine, its programs as processes beside it.

    with Kubernetes(nodes=2, images=write_gpu_images) as kubernetes:
        with Installation(kubernetes, {"127.0.0.3": [card_profile("Tesla M40", 12209)]}): ...

Every program has the token of its own service account, with the rights that the chart of deploy/
gives it. Each node has a simulated driver, which its agent mounts into containers where NVIDIA's
images look for one.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from gpupool.hardware.simdriver import NodeFiles, create_node
from gpupool.hardware.simdriver_cards import CardProfile
from gpupool.hardware.simdriver_state import Driver
from testbed.cluster import CannotRun, Kubernetes
from testbed.controlplane import Way
from testbed.find_kubectl import ensure_kubectl
from testbed.node import Node
from testbed.nvidia_ctk import DRIVER, generate
from testbed.processes import Child, free_port

CHART = Path(__file__).resolve().parent.parent / "deploy" / "gpupool"
NAMESPACE = "kube-system"
_WITH_LIMITS = Driver("615.71.09", 13040)  # holds memory limits of cgroups itself
# How cards get into containers, by node: see docs/kubernetes.md.
MOUNTS, RUNTIME, RUNTIME_CLASS, NRI, NVIDIA_NRI = WAYS = (
    "mounts",
    "runtime",
    "runtime-class",
    "nri",
    "nvidia-nri",
)
_RIGHTS = (
    "service-accounts.yaml",
    "agent-rbac.yaml",
    "scheduler-rbac.yaml",
    "admission-rbac.yaml",
    "webhook-configurations.yaml",
    "node-policies.yaml",
)


def helm_program() -> Path:
    """Raises CannotRun."""
    beside = Path(sys.executable).with_name("helm")
    found = beside if beside.exists() else shutil.which("helm")
    if found is None:
        raise CannotRun("the chart: wanted helm (package helm-binary), found none")
    return Path(found)


class Installation:
    """`programs` by name: scheduler-0, scheduler-1, admission, agent-<node>."""

    def __init__(
        self,
        kubernetes: Kubernetes,
        cards: Mapping[str, Sequence[CardProfile]],
        *,
        schedulers: int = 1,
        values: Sequence[str] = (),
        way: Way | None = None,
        injection: Mapping[str, str] | None = None,
    ) -> None:
        """`way`: how its programs reach the API server, if not straight. `injection`: by node, how
        cards get into containers, one of WAYS; on all others, by mounts."""
        self._kubernetes = kubernetes
        self._cards = cards
        self._schedulers = schedulers
        self._values = values
        self._way = way
        self._injection = injection or {}
        self._folder = kubernetes.plane.folder / "gpupool"
        self._commands: dict[str, list[str]] = {}
        self.programs: dict[str, Child] = {}
        self.drivers: dict[str, NodeFiles] = {}

    def __enter__(self) -> Installation:
        self._folder.mkdir()
        (self._folder / "rights.yaml").write_text(self._rights())
        self.kubectl("apply", "-f", str(self._folder / "rights.yaml"))
        for account in ("gpupool-scheduler", "gpupool-admission"):
            self._write_kubeconfig(account)
        for node in self._kubernetes.nodes:
            # As the token of an agent in a pod, it names the node: the policies look at that.
            self.kubectl("wait", "--for=create", f"node/{node.name}", "--timeout=60s")
            bound = ("--bound-object-kind=Node", f"--bound-object-name={node.name}")
            self._write_kubeconfig("gpupool-agent", f"agent-{node.name}", *bound)
        self._commands["admission"] = self._admission()
        for number in range(self._schedulers):
            self._commands[f"scheduler-{number}"] = self._scheduler()
        for node in self._kubernetes.nodes:
            self._commands[f"agent-{node.name}"] = self._agent(node)
            if self._way_of(node) == NVIDIA_NRI:
                self._commands[f"nvidia-nri-{node.name}"] = self._nvidia_nri(node)
        try:
            for name in self._commands:
                self.start(name)
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

    def start(self, name: str) -> None:
        number = sum(1 for _ in self._folder.glob(f"{name}.*.log"))
        log = self._folder / f"{name}.{number}.log"
        self.programs[name] = Child(name, self._commands[name], log)

    def kill(self, name: str) -> None:
        """As if its machine had lost power; `start` begins it again."""
        self.programs.pop(name).stop(patience=0.0)

    def leave_out(self, name: str, beginning: str) -> None:
        """Starts it again, without arguments that begin so."""
        self.kill(name)
        told = self._commands[name]
        self._commands[name] = [each for each in told if not each.startswith(beginning)]
        self.start(name)

    def freeze(self, name: str) -> None:
        """It answers nobody, until it is thawed."""
        os.kill(self.programs[name].pid, signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        os.kill(self.programs[name].pid, signal.SIGCONT)

    def leader(self) -> str:
        """The scheduler that holds the Lease, as its log says; empty while nobody does."""
        terms = {
            name: re.findall(r"leading( no more)?", program.log.read_text())
            for name, program in self.programs.items()
            if name.startswith("scheduler-")
        }
        return next((name for name, told in terms.items() if told and not told[-1]), "")

    def stop(self) -> None:
        while self.programs:
            self.programs.popitem()[1].stop()

    def file(self, text: str) -> str:
        """The path of a new file with this text."""
        handle, path = tempfile.mkstemp(dir=self._folder)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        return path

    def kubectl(self, *arguments: str) -> str:
        program = ensure_kubectl()
        if program is None:
            raise CannotRun("wanted kubectl, or Go to build it; found neither")
        command = [str(program), f"--kubeconfig={self._kubernetes.plane.kubeconfig}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def _rights(self) -> str:
        command = [str(helm_program()), "template", "gpupool", str(CHART), "-n", NAMESPACE]
        command += [f"--show-only=templates/{name}" for name in _RIGHTS]
        command += [f"--set={value}" for value in self._values]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def _write_kubeconfig(self, account: str, name: str = "", *flags: str) -> None:
        asked = ("create", "token", account, "-n", NAMESPACE, "--duration=12h", *flags)
        token = self.kubectl(*asked).strip()
        file = self._folder / (name or account)
        file.touch(mode=0o600)
        file.write_text(self._kubernetes.plane.kubeconfig_of(account, token, self._way))

    def _program(self, name: str, config: str, *flags: str) -> list[str]:
        config = f"--kubeconfig={self._folder / config}"
        return [sys.executable, "-m", "gpupool", name, config, *flags]

    def _admission(self) -> list[str]:
        port = free_port()
        return self._program("admission", "gpupool-admission", f"--address=127.0.0.1:{port}")

    def _scheduler(self) -> list[str]:
        return self._program("scheduler", "gpupool-scheduler", "--health-address=")

    def _agent(self, node: Node) -> list[str]:
        cards = self._cards.get(node.name, ())
        version = _WITH_LIMITS if node.runtime.has_leaves else None
        driver = create_node(node.driver, node.name, cards, version)
        # Containers of any user count in it, as they may use the devices of a real driver.
        os.chmod(driver.state, 0o666)
        self.drivers[node.name] = driver
        agent = self._program(
            "agent",
            f"agent-{node.name}",
            f"--node={node.name}",
            f"--plugins={node.plugins}",
            f"--pod-resources={node.folder / 'kubelet' / 'pod-resources' / 'kubelet.sock'}",
            f"--pods={node.pods}",
            f"--simulated={driver.state}",
            *self._injected(node, driver),
            f"--install-limiter={node.folder / 'limiter'}",
            f"--driver-libraries={DRIVER}/lib",
        )
        if not node.runtime.has_leaves:
            return agent
        # Limits are set through NVML's own names, in the simulated library.
        library = f"LD_LIBRARY_PATH={driver.libraries}"
        return ["/usr/bin/env", library, *agent, f"--cgroups={node.leaves}"]

    def _way_of(self, node: Node) -> str:
        return self._injection.get(node.name, MOUNTS)

    def _injected(self, node: Node, driver: NodeFiles) -> list[str]:
        way = self._way_of(node)
        if way == MOUNTS:
            return [f"--mount={driver.directory}:{DRIVER}:rw"]
        generate(driver, node.cdi / "nvidia.json")
        flags = [f"--cdi={node.cdi}"]
        flags.append(f"--nri={node.nri}")
        if way != NRI:
            flags.append("--nri-only-checks")
        if way == RUNTIME:
            # An agent in a container sees by itself that the runtime has brought it the driver.
            flags.append(f"--way={RUNTIME}")
        return flags

    def _nvidia_nri(self, node: Node) -> list[str]:
        program = [sys.executable, "-m", "testbed.nvidia_nri"]
        return [*program, f"--socket={node.nri}", f"--cdi={node.cdi}"]
