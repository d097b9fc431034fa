"""NodePool objects: a pool of the cluster file as an object of our own API group. Pure.

The spec has the same fields as a pool in a cluster file and is checked by the same code. The name
is that of the object. `kubectl scale` sets spec.count.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from gpupool.contract import names
from gpupool.contract.yaml_document import Document, Problem
from gpupool.local.config import file_format
from gpupool.local.config.catalogue import Catalogue, catalogue
from gpupool.local.config.pools import Location, pool_problems, pool_spec
from gpupool.local.config.schema_problems import schema_problems
from gpupool.local.config.spec import ClusterSpec, PoolSpec
from kubeclient.objects import Obj
from kubeclient.resources import Resource

NODE_POOLS = Resource(
    names.API_GROUP,
    names.API_VERSION,
    names.NODE_POOL_PLURAL,
    names.NODE_POOL_KIND,
    namespaced=False,
)

# The phases that the ACK documents call 初始化中 and 已激活, and that of a pool that cannot be as
# its spec says: the condition Ready has the reason.
INITIALIZING = "Initializing"
ACTIVE = "Active"
FAILED = "Failed"

# Keywords of JSON Schema that a CRD's schema must not have.
_NOT_STRUCTURAL = {"propertyNames", "x-wanted", "title"}
_MOST_LABELS = 1000


def nodepool_crd(types: Iterable[str] = ()) -> Obj:
    """`types`: instance types that a pool may name; none: any."""
    plural, group = names.NODE_POOL_PLURAL, names.API_GROUP
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {
                "kind": names.NODE_POOL_KIND,
                "listKind": f"{names.NODE_POOL_KIND}List",
                "plural": plural,
                "singular": "nodepool",
                "shortNames": ["np"],
            },
            "versions": [_version(sorted(types))],
        },
    }


def _version(types: list[str]) -> Obj:
    return {
        "name": names.API_VERSION,
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.count",
                "statusReplicasPath": ".status.nodes",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": "Status", "type": "string", "jsonPath": ".status.phase"},
            {"name": "Instance-Type", "type": "string", "jsonPath": ".spec.instanceType"},
            {"name": "Wanted", "type": "integer", "jsonPath": ".spec.count"},
            {"name": "Nodes", "type": "integer", "jsonPath": ".status.nodes"},
            {"name": "Ready", "type": "integer", "jsonPath": ".status.readyNodes"},
            {
                "name": "Reason",
                "type": "string",
                "jsonPath": '.status.conditions[?(@.type=="Ready")].reason',
            },
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "schema": {"openAPIV3Schema": _object_schema(types)},
    }


def _object_schema(types: list[str]) -> Obj:
    spec: Obj = _structural(*_pool_schema())
    if types:
        spec["properties"]["instanceType"]["enum"] = types
    # As many as a node can have: a rule looks at each of them, and must have an end.
    spec["properties"]["labels"]["maxProperties"] = _MOST_LABELS
    # What can be known at once is refused at once. The rest (quotas, labels of ours) is told in the
    # status, by `pool_problems` and the controller.
    spec["x-kubernetes-validations"] = [
        {"rule": rule, "message": message} for rule, message in _RULES.items()
    ]
    return {
        "type": "object",
        "description": "A pool of nodes that are alike.",
        "required": ["spec"],
        "properties": {"spec": spec, "status": _STATUS},
    }


_COUNT = "(has(self.count) ? self.count : 1)"
_RULES = {
    "!has(self.autoscaling) || self.autoscaling.min <= self.autoscaling.max": (
        "autoscaling.max: wanted at least autoscaling.min"
    ),
    f"!has(self.autoscaling) || self.autoscaling.min > self.autoscaling.max || "
    f"(self.autoscaling.min <= {_COUNT} && {_COUNT} <= self.autoscaling.max)": (
        "count: wanted a count within autoscaling, from its min to its max"
    ),
    f"!has(self.machines) || size(self.machines) == 0 || {_COUNT} <= size(self.machines)": (
        "count: wanted at most as many nodes as the pool has machines"
    ),
    # A structural schema cannot say it of keys.
    f"!has(self.labels) || self.labels.all(key, key.matches(r'{file_format.LABEL_KEY}'))": (
        f"labels: wanted {file_format.LABEL_KEY_WANTED}"
    ),
}


_STATUS: Obj = {
    "type": "object",
    "properties": {
        "phase": {"type": "string", "description": f"{INITIALIZING}, {ACTIVE} or {FAILED}."},
        "nodes": {"type": "integer"},
        "readyNodes": {"type": "integer"},
        "selector": {"type": "string", "description": "Finds the nodes of the pool."},
        "observedGeneration": {"type": "integer", "format": "int64"},
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": ["type", "status"],
                "properties": {
                    key: {"type": "string"}
                    for key in ("type", "status", "reason", "message", "lastTransitionTime")
                },
            },
        },
    },
}


def _pool_schema() -> tuple[Obj, Obj]:
    """The schema of a pool without its name, and the definitions that it refers to."""
    schema = msgspec.json.schema(file_format.Pool)
    pool = dict(schema["$defs"]["Pool"])
    pool["properties"] = {k: v for k, v in pool["properties"].items() if k != "name"}
    pool["required"] = [name for name in pool["required"] if name != "name"]
    return pool, schema["$defs"]


def _structural(schema: Any, definitions: Obj) -> Any:
    """A structural schema, as CRDs require: no references, a type everywhere, and no
    additionalProperties: false."""
    if isinstance(schema, list):
        return [_structural(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        target = definitions[schema["$ref"].rpartition("/")[2]]
        return _structural({**target, **rest}, definitions)
    plain = {
        key: _properties(value, definitions)
        if key == "properties"
        else _structural(value, definitions)
        for key, value in schema.items()
        if key not in _NOT_STRUCTURAL
    }
    if plain.get("additionalProperties") is False:
        del plain["additionalProperties"]
    if "enum" in plain:
        plain.setdefault("type", "string")
    return plain


def _properties(properties: Obj, definitions: Obj) -> Obj:
    """The keys here are names of fields: one that equals a keyword must not be removed."""
    return {name: _structural(schema, definitions) for name, schema in properties.items()}


def nodepool_object(pool: PoolSpec) -> Obj:
    spec: Obj = {
        "instanceType": pool.instance_type.name,
        "count": pool.count,
        "role": pool.role.value,
        "region": pool.region,
        "zone": pool.zone,
        "os": pool.os.name,
        "labels": dict(pool.labels),
        "taints": [
            {"key": taint.key, "value": taint.value, "effect": taint.effect}
            for taint in pool.taints
        ],
        "tags": dict(pool.tags),
        "resourceGroup": pool.resource_group,
        "managed": pool.managed,
        "naming": pool.naming.value,
        "nodeNames": list(pool.node_names),
        "machines": list(pool.machines),
    }
    if pool.autoscaling:
        spec["autoscaling"] = {"min": pool.autoscaling.minimum, "max": pool.autoscaling.maximum}
    return {
        "apiVersion": f"{names.API_GROUP}/{names.API_VERSION}",
        "kind": names.NODE_POOL_KIND,
        "metadata": {"name": pool.name},
        "spec": {key: value for key, value in spec.items() if value not in ("", [], {})},
    }


def pool_of(nodepool: Obj, cluster: ClusterSpec) -> PoolSpec | tuple[Problem, ...]:
    """The pool that the object describes, or everything that is wrong with it."""
    data = {**nodepool.get("spec", {}), "name": nodepool["metadata"]["name"]}
    document = Document(data)
    schema = msgspec.json.schema(file_format.Pool)
    problems = tuple(schema_problems(document, schema))
    if problems:
        return problems
    pool = msgspec.convert(data, file_format.Pool)
    if problems := tuple(pool_problems(pool, cluster.instance_types.keys())):
        return problems
    return pool_spec(pool, Location(cluster.region, cluster.zone), _known(cluster))


def _known(cluster: ClusterSpec) -> Catalogue:
    base = catalogue()
    return Catalogue(cluster.instance_types, base.gpu_models, base.operating_systems)
