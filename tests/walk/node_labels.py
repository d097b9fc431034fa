"""The two documents about node labels (Chinese and English): find GPU nodes, and place by label."""

from tests.walk.terminal import Terminal, rows

# `kubectl get nodes` of the documents; their ages and versions are of 2018.
NODES = """\
cn-beijing.i-2ze2dy2h9w97v65uuaft   Ready     master
cn-beijing.i-2ze8o1a45qdv5q8a7luz   Ready     <none>
cn-beijing.i-2ze8o1a45qdv5q8a7lv0   Ready     <none>
cn-beijing.i-2ze9xylyn11vop7g5bwe   Ready     master
cn-beijing.i-2zed5sw8snjniq6mf5e5   Ready     master
cn-beijing.i-2zej9s0zijykp9pwf7lu   Ready     <none>
"""
M40 = ("cn-beijing.i-2ze8o1a45qdv5q8a7luz", "cn-beijing.i-2ze8o1a45qdv5q8a7lv0")
PLAIN = "cn-beijing.i-2zej9s0zijykp9pwf7lu"
# The labels of `kubectl describe node` in the order of the documents. Between them we have more,
# such as those that Kubernetes has got since.
LABELS = """\
aliyun.accelerator/nvidia_count=1
aliyun.accelerator/nvidia_mem=12209MiB
aliyun.accelerator/nvidia_name=Tesla-M40
beta.kubernetes.io/arch=amd64
beta.kubernetes.io/instance-type=ecs.gn4-c4g1.xlarge
beta.kubernetes.io/os=linux
failure-domain.beta.kubernetes.io/region=cn-beijing
failure-domain.beta.kubernetes.io/zone=cn-beijing-a
kubernetes.io/hostname=cn-beijing.i-2ze8o1a45qdv5q8a7luz
"""


def walk(terminal: Terminal) -> None:
    """Both documents have the same steps and the same manifests."""
    _look_at_the_nodes(terminal)
    _place_by_label(terminal)


def _look_at_the_nodes(terminal: Terminal) -> None:
    # Open until a web console has it: Clusters > Nodes > More > Details shows the labels.
    shown = terminal.types("kubectl get nodes")
    assert shown.split()[:5] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert rows(shown, 3)[:6] == [line.split() for line in NODES.splitlines()]

    shown = terminal.types(f"kubectl describe node {M40[0]}")
    head = f"Name:               {M40[0]}\nRoles:              <none>\nLabels:             aliyun."
    assert shown.startswith(head)
    labels = [line.removeprefix("Labels:").strip() for line in shown.splitlines()]
    assert [label for label in labels if label in LABELS.split()] == LABELS.split()

    shown = terminal.types("kubectl get no -l aliyun.accelerator/nvidia_name=Tesla-M40")
    assert rows(shown, 3) == [[name, "Ready", "<none>"] for name in M40]


def _place_by_label(terminal: Terminal) -> None:
    # Open until a web console has it: Deployments > Create by Template takes the manifests.
    terminal.types("kubectl apply -f examples/notebook.yaml", "deployment.apps/tf-notebook created")
    terminal.types("kubectl apply -f examples/not-on-gpu-nodes.yaml", "not-in-gpu-node created")
    # Open until a web console has it: Applications > Pods lists both pods.
    terminal.types("kubectl rollout status deployment tf-notebook", "successfully rolled out")
    terminal.types("kubectl wait --for=condition=Ready pod not-in-gpu-node")
    shown = terminal.types("kubectl get pods -o wide")
    places = {row[0]: row[6] for row in rows(shown, 7)}
    assert places.pop("not-in-gpu-node") == PLAIN
    ((notebook, node),) = places.items()
    assert notebook.startswith("tf-notebook-")
    assert node in M40
    terminal.types("kubectl delete -f examples/notebook.yaml -f examples/not-on-gpu-nodes.yaml")
