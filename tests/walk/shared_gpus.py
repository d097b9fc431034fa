"""The document about shared GPUs: node pools with and without isolation, and a task in each."""

from tests.e2e.kubectl import eventually
from tests.walk.terminal import Terminal, rows

ISOLATED, OPEN = "cn-shanghai.192.168.7.157", "cn-shanghai.192.168.7.158"
ADDRESS = "192.168.7.157"
AGENTS = "kubectl get po -n kube-system  -l name=gpushare-device-plugin-ds -o wide"
# Open until a web console has it: Node Pools > Create Node Pool asks for these.
POOL = """\
apiVersion: gpupool.io/v1alpha1
kind: NodePool
metadata: {{name: {name}}}
spec:
  count: 1
  os: Alibaba Cloud Linux 2.x
  instanceType: ecs.gn6v-c8g1.2xlarge
  region: cn-shanghai
  naming: address
  nodeNames: [{node}]
  labels: {{cgpu: "true", cgpu.disable.isolation: "{disabled}"}}
---
"""
POOLS = POOL.format(name="cgpu", node=ISOLATED, disabled="false") + POOL.format(
    name="cgpu-no-isolation", node=OPEN, disabled="true"
)


def walk(terminal: Terminal) -> None:
    _create_the_pools(terminal)
    _submit_the_tasks(terminal)
    _look_at_the_result(terminal)
    _change_the_label(terminal)
    terminal.types("kubectl delete -f examples/shared-gpus.yaml")


def _create_the_pools(terminal: Terminal) -> None:
    # The default cluster has these pools: the document makes them.
    terminal.types("kubectl delete nodepool cgpu cgpu-no-isolation", 'nodepool.gpupool.io "cgpu"')
    terminal.types("kubectl apply -f -", "nodepool.gpupool.io/cgpu created", stdin=POOLS)
    # Its state is Initializing, and then Active.
    terminal.types("kubectl wait --for=jsonpath={.status.phase}=Active nodepool --all")
    shown = terminal.types("kubectl get nodepools cgpu cgpu-no-isolation")
    assert rows(shown, 2) == [["cgpu", "Active"], ["cgpu-no-isolation", "Active"]]


def _submit_the_tasks(terminal: Terminal) -> None:
    terminal.types(
        "kubectl apply -f examples/shared-gpus.yaml",
        "statefulset.apps/cgpu-test created",
        "statefulset.apps/cgpu-test-no-isolation created",
    )
    terminal.types("kubectl rollout status statefulset cgpu-test")
    terminal.types("kubectl rollout status statefulset cgpu-test-no-isolation")
    assert rows(terminal.types("kubectl get po"), 4) == [
        ["cgpu-test-0", "1/1", "Running", "0"],
        ["cgpu-test-no-isolation-0", "1/1", "Running", "0"],
    ]


def _look_at_the_result(terminal: Terminal) -> None:
    # New kubectls no longer take the command without the two dashes, as the document has it.
    shown = terminal.tries("kubectl exec cgpu-test-0 nvidia-smi")
    assert "3226MiB |" in shown or "Use exec [POD] -- [COMMAND] instead" in shown
    shown = terminal.types("kubectl exec cgpu-test-0 -- nvidia-smi", "Tesla V100-SXM2-16GB")
    assert "/   3226MiB |" in shown
    assert "16130MiB" not in shown
    shown = terminal.types("kubectl exec cgpu-test-no-isolation-0 -- nvidia-smi")
    assert "/  16130MiB |" in shown
    terminal.types(
        "kubectl exec cgpu-test-no-isolation-0 -- env | grep ALIYUN",
        "ALIYUN_COM_GPU_MEM_CONTAINER=3\n",
        "ALIYUN_COM_GPU_MEM_DEV=15\n",
    )
    terminal.types("gpupool plugins install")
    terminal.types('export PATH="$HOME/.local/bin:$PATH"')
    shown = terminal.types("kubectl inspect cgpu", "6/30 (20%)")
    # On a slow machine, lines of progress come before the table.
    nodes = [row for row in rows(shown, 3) if row[:1] in ([ISOLATED], [OPEN])]
    assert [(row[0], row[2]) for row in nodes] == [(ISOLATED, "3/15"), (OPEN, "3/15")]


def _change_the_label(terminal: Terminal) -> None:
    """The document's note: the agent is restarted, and then the new label counts."""
    terminal.types(f"kubectl label node {ISOLATED} cgpu.disable.isolation=true --overwrite")
    old = _agent(terminal)
    terminal.types(f"kubectl delete po {old} -n kube-system", f'pod "{old}" deleted')
    eventually(lambda: _agent(terminal) not in ("", old))
    # Running pods keep what they have; a new one is not held to its share.
    terminal.types("kubectl exec cgpu-test-0 -- nvidia-smi", "/   3226MiB |")
    terminal.types("kubectl scale statefulset cgpu-test-no-isolation --replicas=2")
    terminal.types("kubectl rollout status statefulset cgpu-test-no-isolation")
    terminal.types("kubectl exec cgpu-test-no-isolation-1 -- nvidia-smi", "/  16130MiB |")
    terminal.types(f"kubectl label node {ISOLATED} cgpu.disable.isolation=false --overwrite")


def _agent(terminal: Terminal) -> str:
    """The pod of the agent on the node with isolation, if it is ready."""
    found = [row for row in rows(terminal.types(AGENTS), 7) if row[5:] == [ADDRESS, ISOLATED]]
    return found[0][0] if len(found) == 1 and found[0][1:3] == ["1/1", "Running"] else ""
