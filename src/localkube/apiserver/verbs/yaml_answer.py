"""Objects as YAML, quoted where Kubernetes quotes, and where other readers need it."""

from collections.abc import Sequence
from typing import Any

import orjson
import yaml

from kubeclient.objects import Obj
from kubeclient.yaml_writing import needs_quotes

_NEVER_WRAPPED = 2**31 - 1
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


def yaml_list(before: Obj, after: Obj, bodies: Sequence[bytes]) -> list[bytes]:
    """A list with its items between those of its fields that stand before and after them."""
    items = [yaml_bytes([orjson.loads(body)]) for body in bodies]
    head = b"items:\n" if items else b"items: []\n"
    return [yaml_bytes(before), head, *items, yaml_bytes(after)]
