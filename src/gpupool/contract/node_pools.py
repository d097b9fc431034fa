"""The pool of a node, by its labels: ours, or what other platforms write."""

from collections.abc import Mapping

from gpupool.contract.names import LABEL_POOL

# Where platforms say to which pool a node belongs.
POOL_LABELS = (
    LABEL_POOL,
    "alibabacloud.com/nodepool-id",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
)
_LABEL_INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def pool_of_labels(labels: Mapping[str, str]) -> str:
    """Its name; without a pool the type of the machine; empty: nobody says either."""
    for key in (*POOL_LABELS, _LABEL_INSTANCE_TYPE):
        if labels.get(key):
            return labels[key]
    return ""
