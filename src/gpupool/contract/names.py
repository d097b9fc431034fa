"""Every name that crosses a process boundary, defined once. docs/contract.md explains each of them.

The values must not change: users, manifests and other tools depend on them.
"""

# Our own API group, and its kinds.
API_GROUP = "gpupool.io"
API_VERSION = "v1alpha1"
NODE_POOL_KIND = "NodePool"
NODE_POOL_PLURAL = "nodepools"

# The pool of a node. Sorts after the labels of Kubernetes, so that `kubectl describe node` begins
# as the documents show it.
LABEL_POOL = "node.gpupool.io/pool"

# The machine behind a node: its resource group and tags, as JSON.
ANNOTATION_RESOURCE_GROUP = "node.gpupool.io/resource-group"
ANNOTATION_TAGS = "node.gpupool.io/tags"
# On a service of a local cluster: where it answers, as a link (localkube's `Names` has it, too).
ANNOTATION_ADDRESS = "gpupool.io/address"

# Resources of GPUs. The last one is legacy: admission rewrites it to whole cards.
# Templates that visitors of the console keep, in each namespace.
CONFIG_MAP_TEMPLATES = "gpupool-console-templates"

RESOURCE_GPU = "nvidia.com/gpu"
RESOURCE_GPU_MEM = "aliyun.com/gpu-mem"
RESOURCE_GPU_PERCENT = "aliyun.com/gpu-core.percentage"
RESOURCE_GPU_ALPHA = "alpha.kubernetes.io/nvidia-gpu"

# On a pod: its gpu-mem is divided evenly over this many cards of one node.
LABEL_GPU_COUNT = "aliyun.com/gpu-count"
# On a pod: "binpack" or "spread" over cards. Pods of a namespace with the same value of same-card
# share one card; with the same value of different-card they never share one.
LABEL_CARD_PLACEMENT = "gpupool.io/card-placement"
LABEL_SAME_CARD = "gpupool.io/same-card"
LABEL_DIFFERENT_CARD = "gpupool.io/different-card"
# On a pod: the cards that it accepts or does not accept, by model and by uuid, separated by commas.
# Annotations, because the value of a label has no room for two uuids.
ANNOTATION_CARD_MODELS = "gpupool.io/card-models"
ANNOTATION_AVOIDED_MODELS = "gpupool.io/avoid-card-models"
ANNOTATION_CARD_UUIDS = "gpupool.io/card-uuids"
ANNOTATION_AVOIDED_UUIDS = "gpupool.io/avoid-card-uuids"

# On a pod, as label or annotation: who it belongs to, in reports.
LABEL_USER = "gpupool.io/user"
# On a workload that was scaled to zero because it was idle: how many replicas it had.
ANNOTATION_IDLE_REPLICAS = "gpupool.io/idle-replicas"
# On a workload: since when its users know that it will be scaled to zero.
ANNOTATION_IDLE_WARNED = "gpupool.io/idle-warned"
# On a workload, the template of its pods, or a namespace: nobody scales it to zero by himself. Only
# "false" means no: whoever has set anything else wanted to be left alone.
LABEL_KEEP_IDLE = "gpupool.io/keep-idle"

# Written by the agent about the cards of its node.
LABEL_NVIDIA_COUNT = "aliyun.accelerator/nvidia_count"
LABEL_NVIDIA_MEM = "aliyun.accelerator/nvidia_mem"
LABEL_NVIDIA_NAME = "aliyun.accelerator/nvidia_name"
LABEL_NVIDIA_NAME_ALPHA = "alpha.kubernetes.io/nvidia-gpu-name"
ANNOTATION_INVENTORY = "gpupool.io/inventory"
LABEL_ISOLATION = "gpupool.io/isolation"  # "driver" where the driver itself holds isolated shares
# How cards get into containers, one of core.ways.Way or "none"; and the runtime class that brings
# them, where one does.
LABEL_WAY = "gpupool.io/way"
LABEL_RUNTIME_CLASS = "gpupool.io/runtime-class"
# Written by people: the way to use on this node.
LABEL_PINNED_WAY = "gpupool.io/pinned-way"
# Written by people about the cards of a node; see `contract/card_orders.py`.
ANNOTATION_CORDONED_CARDS = "gpupool.io/cordoned-cards"
ANNOTATION_CLEARED_CARDS = "gpupool.io/cleared-cards"
# On a node, by `gpupool defrag`: pods that are to move there; see `contract/planned_moves.py`.
ANNOTATION_PLANNED_MOVES = "gpupool.io/planned-moves"
# The node condition that is true while a card has a problem.
CONDITION_GPU_PROBLEM = "GpuProblem"
# Field managers of the agent's server-side apply. Labels give way to other writers, the inventory
# does not.
MANAGER_LABELS = "gpupool-agent"
MANAGER_INVENTORY = "gpupool-agent-inventory"
MANAGER_SWITCHES = "gpupool-agent-switches"  # labels of others that we were asked to set

# Set by the platform on the nodes of a pool: cards shared or whole, limiter on or off.
LABEL_CGPU = "cgpu"
LABEL_CGPU_NO_ISOLATION = "cgpu.disable.isolation"
LABEL_GPU_SCHEDULE = "ack.node.gpu.schedule"
LABEL_GPU_PLACEMENT = "ack.node.gpu.placement"

SCHEDULER_NAME = "gpupool-scheduler"
# The profile of kube-scheduler for pods with GPUs, which asks the extender about a sample of nodes.
EXTENDER_PROFILE = "gpupool-extender"
# The one Lease of a cluster: its holder decides about GPUs, as scheduler or as extender.
LEASE_NAMESPACE = "kube-system"
SCHEDULER_LEASE = "gpupool-scheduler"
# On the Lease, by all candidates: the values of spec.schedulerName to be served.
ANNOTATION_SERVES = "gpupool.io/serves"
# On the Lease, by the leader: those of leaders before that have not handed over.
ANNOTATION_SERVED_BEFORE = "gpupool.io/served-before"
# On the Lease, by an extender in standby: schedulers hand over to it, as it can serve for them.
ANNOTATION_WANTED_BY = "gpupool.io/wanted-by"
# On a pending pod, by a new leader: changes its resourceVersion, so that earlier Bindings fail.
ANNOTATION_TERM = "gpupool.io/scheduler-term"
# What the scheduler writes with the Binding; see `contract/allocation.py`.
ANNOTATION_ALLOCATION = "gpupool.io/allocation"
ANNOTATION_MEM_IDX = "ALIYUN_COM_GPU_MEM_IDX"
ANNOTATION_MEM_POD = "ALIYUN_COM_GPU_MEM_POD"
ANNOTATION_MEM_DEV = "ALIYUN_COM_GPU_MEM_DEV"
ANNOTATION_MEM_ASSIGNED = "ALIYUN_COM_GPU_MEM_ASSIGNED"
ANNOTATION_MEM_ASSUME_TIME = "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
# Prefixes of annotation keys; the name of the container follows the slash.
GROUP_DEVICES = "devices.gpupool.io"
GROUP_INDEXES = "indexes.gpupool.io"
GROUP_CARD_UNITS = "card-memory.gpupool.io"
GROUP_NO_ISOLATION = "no-isolation.gpupool.io"
GROUP_LIMITS = "limits.gpupool.io"
# Where the driver holds shares itself: what it guarantees and allows, in MiB on each card.
GROUP_MEMORY_REQUEST = "memory-request.gpupool.io"
GROUP_MEMORY_LIMIT = "memory-limit.gpupool.io"

# On a pod: the resize request of a user, and its outcome; see `contract/resize.py`.
ANNOTATION_RESIZE = "gpupool.io/resize"
ANNOTATION_RESIZE_OUTCOME = "gpupool.io/resize-outcome"
# On a pod whose limit was lowered: the token that the agent must confirm. On its node: the agent's
# reports.
ANNOTATION_SHRINKING = "gpupool.io/shrinking"
ANNOTATION_SHRINKS = "gpupool.io/shrinks"

# On a pod: containers that ask to run without the limiter. On a node: that this is allowed.
ANNOTATION_NO_ISOLATION = "gpupool.io/no-isolation"
LABEL_ALLOW_NO_ISOLATION = "gpupool.io/allow-no-isolation"
# On a pod of the alpha API: its affinity, as JSON.
ANNOTATION_AFFINITY_ALPHA = "scheduler.alpha.kubernetes.io/affinity"

# On pods that start together or not at all: the name of the group, and its minimum size.
LABEL_POD_GROUP = "pod-group.scheduling.sigs.k8s.io/name"
LABEL_POD_GROUP_MIN = "pod-group.scheduling.sigs.k8s.io/min-available"

# On a node, by the extender: when room was freed, so that kube-scheduler tries pods again.
ANNOTATION_FREED = "gpupool.io/freed"

# Environment variables of containers.
ENV_VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
ENV_MEM_IDX = "ALIYUN_COM_GPU_MEM_IDX"
ENV_MEM_POD = "ALIYUN_COM_GPU_MEM_POD"
ENV_MEM_CONTAINER = "ALIYUN_COM_GPU_MEM_CONTAINER"
ENV_MEM_DEV = "ALIYUN_COM_GPU_MEM_DEV"
ENV_CGPU_DISABLE = "CGPU_DISABLE"
# Read by the limiter: which device a container with a card must have, and words for when it is not
# there. Set by the device plugin; empty: nothing is checked.
ENV_CARD_CHECK = "GPUPOOL_CARD_CHECK"
# Read by the hook of NVIDIA's container toolkit, which makes limits of the driver out of them.
ENV_MEMORY_REQUEST = "NVIDIA_GPU_MEMORY_REQUEST"
ENV_MEMORY_LIMIT = "NVIDIA_GPU_MEMORY_LIMIT"
VISIBLE_DEVICES_NONE = "void"  # for pods that bypassed admission: no card is visible
# On a namespace: with "true", its pods may see cards without a request (monitoring, NVIDIA's own).
LABEL_SEE_ALL_CARDS = "gpupool.io/see-all-cards"
# On a pod: with "false", `gpupool defrag` does not move it.
LABEL_MAY_MOVE = "gpupool.io/may-move"
# On a pod: with "false", no room is kept for it, however long it waits.
LABEL_KEEP_ROOM = "gpupool.io/keep-room"
ENV_SIMULATED_STATE = "GPUPOOL_SIM_STATE"
# On local nodes, of notebook images: "page" serves a plain page although JupyterLab is installed.
ENV_NOTEBOOK = "GPUPOOL_NOTEBOOK"

# In a container with a share: its limit file, and the file in which its processes count usage.
LIMITS_DIRECTORY = "/etc/gpupool"
LIMITS_FILE = "limits"
REGION_DIRECTORY = "/run/gpupool"
REGION_VOLUME = "gpupool-region-"  # an emptyDir; a number follows
REGION_FILE = "region-1"  # the version of its layout
# A mount that no runtime can make, as nobody can make a file in /proc. It holds back containers
# that nobody has put the card into; the name is what their user reads.
HELD_BACK = "/proc/gpupool-agent-has-not-put-the-card-into-this-container"
LIMITER_DIRECTORY = "/usr/local/gpupool"  # the limiter library, installed on the node
PRELOAD_LIST = "/etc/ld.so.preload"  # libraries that the dynamic loader puts into every program

# Of the GPU Operator, on nodes: whether its device plugin runs there. It honours what it finds.
LABEL_DEPLOY_NVIDIA_PLUGIN = "nvidia.com/gpu.deploy.device-plugin"
NVIDIA_PLUGIN_SOCKET = "nvidia-gpu.sock"  # of NVIDIA's own device plugin, beside the kubelet's

# On a pod, by admission: what was asked in the words of another system, and what it became.
ANNOTATION_TRANSLATED = "gpupool.io/translated"

# Of other programs, on pods: annotations that give devices to containers. The first two are groups:
# <group>, or <group>/<anything>. See `contract/device_annotations.py`.
GROUP_CDI = "cdi.k8s.io"
GROUP_NVIDIA_CDI = "nvidia.cdi.k8s.io"
NVIDIA_CDI_CONTAINER = "container."  # <group>/container.<name of the container>
PREFIX_NVIDIA_CONTAINER = "nvidia.com/container."
CDI_MANAGEMENT = "management.nvidia.com/gpu"  # devices for NVIDIA's own programs

# The name of admission's webhook configurations, Secret and service account.
ADMISSION = "gpupool-admission"
# The DaemonSet of the agent.
AGENT_NAMESPACE = "kube-system"
AGENT_DAEMON_SET = "gpushare-device-plugin-ds"
# The port of the agent's container for metrics and readings, and the number that it has by default.
AGENT_PORT_NAME = "readings"
AGENT_PORT = 9445
