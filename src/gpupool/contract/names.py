"""Every name that crosses a process boundary, written once. docs/contract.md says what each means.

Values are stable: users, manifests and other tools have them written down.
"""

# Our own API group, and its kinds.
API_GROUP = "gpupool.io"
API_VERSION = "v1alpha1"
NODE_POOL_KIND = "NodePool"
NODE_POOL_PLURAL = "nodepools"

# The pool that a node belongs to. Sorts behind the labels above, so that `kubectl describe node`
# begins as the documents show it.
LABEL_POOL = "node.gpupool.io/pool"

# The machine behind a node: its resource group and tags, as JSON.
ANNOTATION_RESOURCE_GROUP = "node.gpupool.io/resource-group"
ANNOTATION_TAGS = "node.gpupool.io/tags"

# Resources of GPUs. The last one is legacy: admission rewrites it to whole cards.
RESOURCE_GPU = "nvidia.com/gpu"
RESOURCE_GPU_MEM = "aliyun.com/gpu-mem"
RESOURCE_GPU_PERCENT = "aliyun.com/gpu-core.percentage"
RESOURCE_GPU_ALPHA = "alpha.kubernetes.io/nvidia-gpu"

# On a pod: its gpu-mem is spread evenly over so many cards of one node.
LABEL_GPU_COUNT = "aliyun.com/gpu-count"
# On a pod: "binpack" or "spread" over cards; pods of a namespace with the same value of the next
# share one card, or are never on the same.
LABEL_CARD_PLACEMENT = "gpupool.io/card-placement"
LABEL_SAME_CARD = "gpupool.io/same-card"
LABEL_DIFFERENT_CARD = "gpupool.io/different-card"

# What the agent says of a node's cards.
LABEL_NVIDIA_COUNT = "aliyun.accelerator/nvidia_count"
LABEL_NVIDIA_MEM = "aliyun.accelerator/nvidia_mem"
LABEL_NVIDIA_NAME = "aliyun.accelerator/nvidia_name"
LABEL_NVIDIA_NAME_ALPHA = "alpha.kubernetes.io/nvidia-gpu-name"
ANNOTATION_INVENTORY = "gpupool.io/inventory"
# What people say of a node's cards: `contract/card_orders.py` makes and reads them.
ANNOTATION_CORDONED_CARDS = "gpupool.io/cordoned-cards"
ANNOTATION_CLEARED_CARDS = "gpupool.io/cleared-cards"
# The condition of a node that tells when something is wrong with its cards.
CONDITION_GPU_PROBLEM = "GpuProblem"
# How the agent signs what it writes: labels give way to others, the inventory does not.
MANAGER_LABELS = "gpupool-agent"
MANAGER_INVENTORY = "gpupool-agent-inventory"

# What the platform says of a pool: shared by memory or not, and with the limiter or without.
LABEL_CGPU = "cgpu"
LABEL_CGPU_NO_ISOLATION = "cgpu.disable.isolation"
LABEL_GPU_SCHEDULE = "ack.node.gpu.schedule"
LABEL_GPU_PLACEMENT = "ack.node.gpu.placement"

# What the scheduler writes with the Binding. `contract/allocation.py` makes and reads them.
SCHEDULER_NAME = "gpupool-scheduler"
# The one Lease of a cluster: who holds it decides about its GPUs, as scheduler or as extender.
LEASE_NAMESPACE = "kube-system"
SCHEDULER_LEASE = "gpupool-scheduler"
# On it, by all who want it: the values of spec.schedulerName that are to be served.
ANNOTATION_SERVES = "gpupool.io/serves"
# On it, by an extender that waits: others hand over to it, because it can serve for them too.
ANNOTATION_WANTED_BY = "gpupool.io/wanted-by"
# On a pod without a node, by a scheduler that took over: Bindings sent before that are void.
ANNOTATION_TERM = "gpupool.io/scheduler-term"
ANNOTATION_ALLOCATION = "gpupool.io/allocation"
ANNOTATION_MEM_IDX = "ALIYUN_COM_GPU_MEM_IDX"
ANNOTATION_MEM_POD = "ALIYUN_COM_GPU_MEM_POD"
ANNOTATION_MEM_DEV = "ALIYUN_COM_GPU_MEM_DEV"
ANNOTATION_MEM_ASSIGNED = "ALIYUN_COM_GPU_MEM_ASSIGNED"
ANNOTATION_MEM_ASSUME_TIME = "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
# Groups of keys; the container's name follows the slash.
GROUP_DEVICES = "devices.gpupool.io"
GROUP_INDEXES = "indexes.gpupool.io"
GROUP_CARD_UNITS = "card-memory.gpupool.io"
GROUP_NO_ISOLATION = "no-isolation.gpupool.io"
GROUP_LIMITS = "limits.gpupool.io"

# On a pod, by people: another share for its containers while they run; and what became of the wish.
# `contract/resize.py` makes and reads all of these.
ANNOTATION_RESIZE = "gpupool.io/resize"
ANNOTATION_RESIZE_OUTCOME = "gpupool.io/resize-outcome"
# On a pod whose limit is lower than its share: which lowering it is that the agent must confirm,
# and on its node: what the agent has found.
ANNOTATION_SHRINKING = "gpupool.io/shrinking"
ANNOTATION_SHRINKS = "gpupool.io/shrinks"

# On a pod: its containers that would rather run without the limiter, and on a node: that they may.
ANNOTATION_NO_ISOLATION = "gpupool.io/no-isolation"
LABEL_ALLOW_NO_ISOLATION = "gpupool.io/allow-no-isolation"
# On a pod of the alpha API: its affinity, as JSON.
ANNOTATION_AFFINITY_ALPHA = "scheduler.alpha.kubernetes.io/affinity"

# On pods that start together or not at all: the group's name, and how many make it complete.
LABEL_POD_GROUP = "pod-group.scheduling.sigs.k8s.io/name"
LABEL_POD_GROUP_MIN = "pod-group.scheduling.sigs.k8s.io/min-available"

# On a node, by the extender: when something was freed, so that kube-scheduler looks again.
ANNOTATION_FREED = "gpupool.io/freed"

# What containers read.
ENV_VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
ENV_MEM_IDX = "ALIYUN_COM_GPU_MEM_IDX"
ENV_MEM_POD = "ALIYUN_COM_GPU_MEM_POD"
ENV_MEM_CONTAINER = "ALIYUN_COM_GPU_MEM_CONTAINER"
ENV_MEM_DEV = "ALIYUN_COM_GPU_MEM_DEV"
ENV_CGPU_DISABLE = "CGPU_DISABLE"
VISIBLE_DEVICES_NONE = "void"  # what a pod that missed admission sees: no card at all
ENV_SIMULATED_STATE = "GPUPOOL_SIM_STATE"

# Where a container with a share finds its limit, and the memory that its processes count in.
LIMITS_DIRECTORY = "/etc/gpupool"
LIMITS_FILE = "limits"
REGION_DIRECTORY = "/run/gpupool"
REGION_FILE = "region-1"  # the version of its layout
LIMITER_DIRECTORY = "/usr/local/gpupool"  # the limiter itself, as the node has installed it
PRELOAD_LIST = "/etc/ld.so.preload"  # what the loader puts into every program

NVIDIA_PLUGIN_SOCKET = "nvidia-gpu.sock"  # of NVIDIA's own device plugin, beside the kubelet's

# What admission calls its configurations, its Secret and its service account.
ADMISSION = "gpupool-admission"
# The pods of the agent.
AGENT_NAMESPACE = "kube-system"
AGENT_DAEMON_SET = "gpushare-device-plugin-ds"
