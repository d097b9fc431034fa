"""What was recorded of Kubernetes, and the code that reads it.

tools/schemas/__main__.py says what each file is, and `make schemas` renews all of them at once.
recorded.json says which Kubernetes version they are of, with a digest of each file: a file that was
edited by hand, or renewed without the others, fails a test.
"""

import gzip
from pathlib import Path
from typing import Any

import orjson

_FOLDER = Path(__file__).parent


def read(name: str) -> Any:
    """The content of `name`, parsed. Callers keep what they need of it."""
    packed = (_FOLDER / name).read_bytes()
    return orjson.loads(gzip.decompress(packed) if name.endswith(".gz") else packed)
