"""Names in the stores of existing clusters, which every later version must find again."""

from gpupool.local.config.settings import NAMES


def test_names_that_are_stored_in_clusters_never_change() -> None:
    assert NAMES.node_label == "node.gpupool.io/pool"
    assert NAMES.kubelet_annotation == "node.gpupool.io/kubelet"
    assert NAMES.kubeconfig_extension == "gpupool.io/cluster"
    assert NAMES.provisioner == "gpupool.io/local-directory"
    assert NAMES.load_balancer_ports_annotation == "gpupool.io/load-balancer-ports"
    assert NAMES.runtime_annotation == "gpupool.io/runtime"
