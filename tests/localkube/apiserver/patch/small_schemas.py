"""Schemas of a Pod-like kind, small enough to read, and values that fit them."""

from typing import Any

from hypothesis import strategies as st

from localkube.apiserver.kinds import Kind
from localkube.apiserver.schema.node import Schema, Type

TEXT = Schema(Type.STRING)
NUMBER = Schema(Type.INTEGER)
TEXTS = Schema(Type.MAP, items=TEXT)

PORT = Schema(
    Type.OBJECT,
    name="Port",
    fields={"port": NUMBER, "protocol": TEXT, "name": TEXT},
)
ENV = Schema(Type.OBJECT, name="Env", fields={"name": TEXT, "value": TEXT})


def keyed(item: Schema, *keys: str, strategy: str = "merge", **defaults: Any) -> Schema:
    return Schema(
        Type.LIST,
        items=item,
        list_type="map",
        list_keys=keys,
        key_defaults=defaults,
        patch_strategy=(strategy,),
        patch_merge_key=keys[0],
    )


CONTAINER = Schema(
    Type.OBJECT,
    name="Container",
    fields={
        "name": TEXT,
        "image": TEXT,
        "args": Schema(Type.LIST, items=TEXT),
        "env": keyed(ENV, "name"),
        "ports": keyed(PORT, "port", "protocol", protocol="TCP"),
    },
)
METADATA = Schema(
    Type.OBJECT,
    name="ObjectMeta",
    fields={
        "name": TEXT,
        "namespace": TEXT,
        "uid": TEXT,
        "resourceVersion": TEXT,
        "labels": TEXTS,
        "annotations": TEXTS,
        "finalizers": Schema(Type.LIST, items=TEXT, list_type="set", patch_strategy=("merge",)),
        "managedFields": Schema(Type.LIST, items=Schema()),
    },
)
ONE_OF = Schema(
    Type.OBJECT,
    name="Strategy",
    fields={"type": TEXT, "rolling": Schema(Type.OBJECT, name="Rolling", fields={"surge": NUMBER})},
    patch_strategy=("retainKeys",),
)
SPEC = Schema(
    Type.OBJECT,
    name="Spec",
    fields={
        "replicas": NUMBER,
        "containers": keyed(CONTAINER, "name"),
        "selector": Schema(Type.MAP, items=TEXT, atomic_map=True),
        "tolerations": Schema(Type.LIST, items=Schema(Type.OBJECT, fields={"key": TEXT})),
        "strategy": ONE_OF,
        "extra": Schema(preserve_unknown=True),
        "whole": Schema(Type.OBJECT, fields={"a": TEXT, "b": TEXT}, patch_strategy=("replace",)),
    },
)
STATUS = Schema(Type.OBJECT, name="Status", fields={"phase": TEXT})
THING = Schema(
    Type.OBJECT,
    name="Thing",
    fields={
        "apiVersion": TEXT,
        "kind": TEXT,
        "metadata": METADATA,
        "spec": SPEC,
        "status": STATUS,
    },
)
KIND = Kind("example.com", "v1", "Thing", "things", "thing", True, (), has_status=True, custom=True)


def thing(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    obj: dict[str, Any] = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "t", **metadata},
    }
    return obj if spec is None else {**obj, "spec": spec}


def container(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


letters = st.sampled_from("ab")
texts = st.dictionaries(letters, letters, max_size=2)


def some(**fields: Any) -> Any:
    """An object with some of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


def lists_by(key: str, values: list[Any], **fields: Any) -> Any:
    """Lists whose elements differ in `key`."""
    element = st.builds(
        lambda chosen, rest: {key: chosen, **rest}, st.sampled_from(values), some(**fields)
    )
    return st.lists(element, min_size=1, max_size=3, unique_by=lambda item: item[key])


containers = lists_by(
    "name",
    ["c", "d", "e"],
    image=letters,
    args=st.lists(letters, min_size=1, max_size=2),
    env=lists_by("name", ["A", "B"], value=letters),
    ports=lists_by("port", [80, 443], protocol=st.sampled_from(["TCP", "UDP"])),
)
specs = some(
    replicas=st.integers(1, 2),
    containers=containers,
    selector=texts,
    tolerations=st.lists(some(key=letters), min_size=1, max_size=2),
    strategy=some(type=letters, rolling=some(surge=st.integers(1, 2))),
    extra=some(a=letters, b=texts, c=st.lists(letters, max_size=1)),
)
things = st.builds(
    lambda spec, metadata: thing(spec, **metadata),
    specs,
    some(
        labels=texts,
        finalizers=st.lists(st.sampled_from(["x/x", "y/y"]), min_size=1, max_size=2, unique=True),
    ),
)
