"""Generated files (tools/schemas): definitions, descriptions, protobuf fields, kinds."""

import gzip
from importlib import resources
from typing import Any

import orjson


def read(name: str) -> Any:
    """The content of `name`, parsed. Callers keep what they need of it."""
    packed = resources.files(__package__).joinpath(name).read_bytes()
    return orjson.loads(gzip.decompress(packed) if name.endswith(".gz") else packed)
