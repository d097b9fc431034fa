"""Objects as YAML, quoted where Kubernetes quotes, and where other readers need it."""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import yaml

from kubeclient.objects import Obj
from kubeclient.yaml_writing import needs_quotes

_NEVER_WRAPPED = 2**31 - 1
_PORTION = 64 << 10  # bytes of JSON
_ITSELF = "."  # a key in managedFields of nearly every object, which Kubernetes does not quote


class _Dumper(yaml.CSafeDumper):
    """With a representer of its own for text."""


def _text(dumper: yaml.CSafeDumper, value: str) -> yaml.ScalarNode:
    style = None
    if "\n" in value:
        style = "|"
    elif value != _ITSELF and (
        needs_quotes(value) or _resolved(dumper, value) != "tag:yaml.org,2002:str"
    ):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _resolved(dumper: yaml.CSafeDumper, value: str) -> str:
    tag: str = dumper.resolve(yaml.ScalarNode, value, (True, False))  # type: ignore[no-untyped-call]
    return tag


_Dumper.add_representer(str, _text)


def yaml_bytes(value: Any) -> bytes:
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=_NEVER_WRAPPED
    )
    return text.encode()


def yaml_items(bodies: Sequence[bytes]) -> list[bytes]:
    return [yaml_bytes([orjson.loads(body)]) for body in bodies]


def portions(bodies: Sequence[bytes]) -> Iterator[list[bytes]]:
    """As many as others can wait for: a kilobyte takes a quarter of a millisecond or more."""
    portion: list[bytes] = []
    size = 0
    for body in bodies:
        portion.append(body)
        size += len(body)
        if size >= _PORTION:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def yaml_list(before: Obj, after: Obj, items: Sequence[bytes]) -> list[bytes]:
    """A list with its items between those of its fields that stand before and after them."""
    head = b"items:\n" if items else b"items: []\n"
    return [yaml_bytes(before), head, *items, yaml_bytes(after)]
