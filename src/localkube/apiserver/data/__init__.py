"""Generated files (tools/schemas): definitions, descriptions, enums, protobuf fields, kinds."""

import gzip
from pathlib import Path
from typing import Any

import orjson

_FOLDER = Path(__file__).parent


def read(name: str) -> Any:
    """The content of `name`, parsed. Callers keep what they need of it."""
    packed = (_FOLDER / name).read_bytes()
    return orjson.loads(gzip.decompress(packed) if name.endswith(".gz") else packed)
