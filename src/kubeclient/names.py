"""Well-known names of Kubernetes itself that more than one program uses."""

# Node labels.
LABEL_ARCH = "kubernetes.io/arch"
LABEL_OS = "kubernetes.io/os"
LABEL_HOSTNAME = "kubernetes.io/hostname"
LABEL_INSTANCE_TYPE = "node.kubernetes.io/instance-type"
LABEL_REGION = "topology.kubernetes.io/region"
LABEL_ZONE = "topology.kubernetes.io/zone"
# The same labels by their older names, which many manifests still use.
LABEL_ARCH_BETA = "beta.kubernetes.io/arch"
LABEL_OS_BETA = "beta.kubernetes.io/os"
LABEL_INSTANCE_TYPE_BETA = "beta.kubernetes.io/instance-type"
LABEL_REGION_BETA = "failure-domain.beta.kubernetes.io/region"
LABEL_ZONE_BETA = "failure-domain.beta.kubernetes.io/zone"
# kubectl shows the part behind the slash as the node's role. Also the key of the taint.
LABEL_ROLE_MASTER = "node-role.kubernetes.io/master"

# What spec.schedulerName is when a pod does not set it.
DEFAULT_SCHEDULER_NAME = "default-scheduler"
