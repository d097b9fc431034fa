"""The cluster file as users write it, and the catalogue: their fields, types and limits.

The JSON Schema for editors and for our own checks (docs/cluster-file.schema.json) is generated from
these classes. `wanted` describes a pattern in words, for error messages.
"""

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

_LABEL_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]"
_DNS_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DNS_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"

LABEL_KEY = rf"^({_DNS_SUBDOMAIN}/)?{_LABEL_NAME}$"
LABEL_KEY_WANTED = 'a label key such as "team" or "example.com/team"'
# Shorter than other names, because it becomes part of other names and of paths.
CLUSTER_NAME = r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?"
CLUSTER_NAME_WANTED = (
    'lower-case letters, digits and "-", at most 40, a letter or digit at both ends'
)


def _wanted(words: str) -> dict[str, Any]:
    return {"x-wanted": words}


Name: TypeAlias = Annotated[
    str,
    Meta(
        pattern=rf"^{_DNS_LABEL}$",
        extra_json_schema=_wanted(
            'lower-case letters, digits and "-", at most 63, a letter or digit at both ends'
        ),
    ),
]
ClusterName: TypeAlias = Annotated[
    str,
    Meta(pattern=rf"^{CLUSTER_NAME}$", extra_json_schema=_wanted(CLUSTER_NAME_WANTED)),
]
NodeName: TypeAlias = Annotated[
    str,
    Meta(
        pattern=rf"^{_DNS_SUBDOMAIN}$",
        max_length=253,
        extra_json_schema=_wanted('lower-case letters, digits, "-" and "."'),
    ),
]
LabelKey: TypeAlias = Annotated[
    str,
    Meta(
        pattern=LABEL_KEY,
        max_length=317,
        extra_json_schema=_wanted(LABEL_KEY_WANTED),
    ),
]
LabelValue: TypeAlias = Annotated[
    str,
    Meta(
        pattern=rf"^({_LABEL_NAME})?$",
        extra_json_schema=_wanted(
            'at most 63 letters, digits, "-", "_" and ".", a letter or digit at both ends'
        ),
    ),
]
Text: TypeAlias = Annotated[str, Meta(min_length=1, max_length=128)]
Network: TypeAlias = Annotated[str, Meta(description="An IPv4 network, as 192.168.0.0/16.")]


class _Part(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Base of all parts of the file: camelCase names, and unknown fields are refused."""


class GpuModel(_Part, frozen=True):
    """A model of card."""

    name: Annotated[Text, Meta(description="As the driver says it, for example Tesla M40.")]
    memory_mib: Annotated[int, Meta(ge=1, description="As the driver shows it.")] = field(
        name="memoryMiB"
    )


class Gpus(_Part, frozen=True):
    """The cards of one machine."""

    model: Annotated[Text, Meta(description="A name out of gpuModels or the catalogue.")]
    count: Annotated[int, Meta(ge=1, le=16)]
    driver: (
        Annotated[
            str,
            Meta(
                pattern=r"^[1-9][0-9]{2}(\.[0-9]{1,3}){1,2}$",
                description="Version of the simulated driver. From 615 on it holds shares itself.",
            ),
        ]
        | UnsetType
    ) = UNSET


class InstanceType(_Part, frozen=True):
    """A kind of machine."""

    name: Annotated[LabelValue, Meta(min_length=1)]
    vcpus: Annotated[int, Meta(ge=1, le=4096)]
    memory_gib: Annotated[float, Meta(gt=0, le=65536)] = field(name="memoryGiB")
    gpus: Gpus | UnsetType = UNSET


class OperatingSystem(_Part, frozen=True):
    """An operating system, and what a node that runs it reports."""

    name: Text
    image: Text
    kernel_version: Text


class Taint(_Part, frozen=True):
    """Keeps pods that do not tolerate it away."""

    key: LabelKey
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    value: LabelValue = ""


class Autoscaling(_Part, frozen=True):
    """Lets the pool grow when pods wait for it, and shrink when its nodes are empty."""

    min: Annotated[int, Meta(ge=0)]
    max: Annotated[int, Meta(ge=0)]


class Pool(_Part, frozen=True):
    """Nodes that are alike."""

    name: Name
    instance_type: Annotated[str, Meta(description="Out of instanceTypes or the catalogue.")]
    count: Annotated[int, Meta(ge=0, le=100_000, description="Nodes to start with.")] = 1
    role: Literal["worker", "control-plane"] = "worker"
    region: Annotated[Name | UnsetType, Meta(description="The cluster's, if not given.")] = UNSET
    zone: Annotated[Name | UnsetType, Meta(description="<region>-a, if not given.")] = UNSET
    os: Literal["CentOS 7.x", "Alibaba Cloud Linux 2.x"] = "CentOS 7.x"
    labels: Annotated[dict[LabelKey, LabelValue], Meta(description="Of every node.")] = field(
        default_factory=dict
    )
    taints: Annotated[list[Taint], Meta(description="Of every node.")] = field(default_factory=list)
    tags: Annotated[dict[Text, str], Meta(description="Of the machines, not of the nodes.")] = (
        field(default_factory=dict)
    )
    resource_group: Annotated[str, Meta(max_length=128)] = ""
    managed: Annotated[bool, Meta(description="The platform repairs and upgrades it.")] = False
    autoscaling: Autoscaling | UnsetType = UNSET
    naming: Annotated[
        Literal["instance-id", "address"],
        Meta(description="cn-beijing.i-2ze8o1a45qdv5q8a7luz, or cn-shanghai.192.168.7.157."),
    ] = "instance-id"
    node_names: Annotated[
        list[NodeName], Meta(description="Given to the first nodes; others get generated ones.")
    ] = field(default_factory=list)
    machines: Annotated[
        list[NodeName],
        Meta(description="Of `gpupool machines`, which the nodes are; new ones, if not given."),
    ] = field(default_factory=list)


class Networks(_Part, frozen=True):
    """The address ranges of the cluster; simulated, so clusters may share them."""

    nodes: Network = "192.168.0.0/16"
    pods: Network = "10.128.0.0/9"


class QuotaValues(_Part, frozen=True):
    """Quotas for this cluster alone, in place of the platform's."""

    nodes_per_cluster: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    routes_per_cluster: Annotated[int, Meta(ge=0)] | UnsetType = UNSET


class Image(_Part, frozen=True):
    """What runs for an image: nothing is pulled."""

    name: Annotated[
        str,
        Meta(
            pattern=r"^[^\s:@]+(:[0-9]+/[^\s:@]+)?(:[^\s@/]+)?$",
            max_length=512,
            description="With or without a tag: example.com/team/trainer, for all its tags.",
            extra_json_schema=_wanted("an image such as example.com/team/trainer:v2"),
        ),
    ]
    command: Annotated[
        list[str],
        Meta(min_length=1, description="Unless the container has one: programs of this machine."),
    ]
    args: Annotated[list[str], Meta(description="Unless the container has a command or args.")] = (
        field(default_factory=list)
    )
    directory: Annotated[
        str,
        Meta(
            pattern=r"^(/[^\n]+)?$",
            description="Of this machine; containers of the image see it, read-only, in its place.",
            extra_json_schema=_wanted("an absolute path"),
        ),
    ] = ""


class Cluster(_Part, frozen=True):
    """A local cluster of gpupool."""

    api_version: Literal["gpupool.io/v1alpha1"]
    kind: Literal["Cluster"]
    pools: list[Pool]
    name: Annotated[ClusterName | UnsetType, Meta(description="--name goes before it.")] = UNSET
    region: Name = "cn-beijing"
    zone: Annotated[Name | UnsetType, Meta(description="<region>-a, if not given.")] = UNSET
    network: Networks = Networks()
    quotas: QuotaValues = QuotaValues()
    gpu_models: list[GpuModel] = field(default_factory=list)
    instance_types: list[InstanceType] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)


class Catalogue(_Part, frozen=True):
    """The machines that the platform offers."""

    operating_systems: list[OperatingSystem]
    gpu_models: list[GpuModel]
    instance_types: list[InstanceType]


def cluster_schema() -> dict[str, Any]:
    """The JSON Schema of a cluster file."""
    schema = msgspec.json.schema(Cluster)
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gpupool cluster file",
    }
    return head | schema
