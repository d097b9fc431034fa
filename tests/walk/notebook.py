"""The document about GPU clusters: a cluster with two GN5 workers, and Jupyter on one of them."""

import re

from tests.walk.browsing import Browser
from tests.walk.terminal import Terminal, rows

# Open until a web console has it: Create Kubernetes Cluster asks for these on one page.
CLUSTER = """\
apiVersion: gpupool.io/v1alpha1
kind: Cluster
name: gn5
pools:
  - {name: control-plane, role: control-plane, instanceType: ecs.g6.xlarge, count: 3}
  - {name: workers, instanceType: ecs.gn5-c8g1.14xlarge, count: 2}
"""


def walk(terminal: Terminal, browser: Browser) -> None:
    """Leaves the cluster running."""
    _make_the_cluster(terminal)
    _run_jupyter(terminal, browser)


def _make_the_cluster(terminal: Terminal) -> None:
    # The limits that the document names: clusters, nodes in each, and routes.
    quotas = dict(line.split()[:2] for line in terminal.types("gpupool quota").splitlines()[1:])
    assert quotas["clusters"] == "5"
    assert quotas["nodes-per-cluster"] == "40"
    assert quotas["routes-per-cluster"] == "48"

    file = terminal.scratch / "gn5.yaml"
    file.write_text(CLUSTER, encoding="utf-8")
    shown = terminal.types(f"gpupool up --config {file}", "5 of 5 nodes are ready")
    terminal.types("".join(re.findall(r"export KUBECONFIG=.*", shown)))

    # Open until a web console has it: Clusters > Nodes > More > Details shows the cards.
    shown = terminal.types("kubectl get nodes -l '!node-role.kubernetes.io/master'")
    workers = [row[0] for row in rows(shown, 1)]
    assert len(workers) == 2
    for worker in workers:
        described = terminal.types(f"kubectl describe node {worker}", "Tesla-P100-PCIE-16GB")
        assert described.count("nvidia.com/gpu:     8") == 2, "capacity and allocatable"


def _run_jupyter(terminal: Terminal, browser: Browser) -> None:
    # Open until a web console has it: Deployments > Create by Template takes the manifest.
    terminal.types(
        "kubectl apply -f examples/notebook-service.yaml",
        "deployment.apps/tf-notebook created",
        "service/tf-notebook created",
    )
    terminal.types("kubectl rollout status deployment tf-notebook", "successfully rolled out")
    # Open until a web console has it: Services shows the external endpoint.
    (row,) = rows(terminal.types("kubectl get svc tf-notebook"), 5)
    assert row[:2] == ["tf-notebook", "LoadBalancer"]
    external_ip, ports = row[3], row[4]
    assert re.fullmatch(r"127\.\d+\.\d+\.\d+", external_ip)
    assert ports.startswith("80:")
    link = terminal.types("gpupool open tf-notebook").strip()
    # Port 80, as in the document, needs root; others get the number of the node port.
    assert link in (f"http://{external_ip}", f"http://{external_ip}:{ports[3:].partition('/')[0]}")
    browser.lists_devices_in_a_notebook(link, "mypassw0rd", "Tesla P100-PCIE-16GB")
    terminal.types("kubectl delete -f examples/notebook-service.yaml")
