"""Schema: what is known about one field, whoever defined it (Kubernetes' own kinds or a CRD).

One shape serves every reader: type checks, unknown fields, strategic merge keys, list types of
server-side apply, and CRD defaulting.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Type(Enum):
    OBJECT = "object"  # named fields
    MAP = "map"  # any key, values of `items`
    LIST = "list"  # elements of `items`
    STRING = "string"
    BYTES = "bytes"  # base64 text
    TIME = "time"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    INT_OR_STRING = "int-or-string"
    QUANTITY = "quantity"
    ANY = "any"  # raw JSON: RawExtension, JSON, preserve-unknown-fields


@dataclass(slots=True)
class Schema:
    """Mutable only while it is being built: definitions refer to one another in circles."""

    type: Type = Type.ANY
    name: str = ""  # Go type name for error texts: "Container", "ObjectMeta"
    description: str = ""
    fields: dict[str, "Schema"] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    items: "Schema | None" = None
    list_type: str = "atomic"  # atomic | set | map   (server-side apply)
    list_keys: tuple[str, ...] = ()
    key_defaults: dict[str, Any] = field(default_factory=dict)  # ports: protocol = TCP
    atomic_map: bool = False
    # Strategic merge (patchStrategy: "merge", "replace", "retainKeys", or both joined by a comma).
    patch_strategy: tuple[str, ...] = ()
    patch_merge_key: str = ""
    preserve_unknown: bool = False
    default: Any = None
    has_default: bool = False
    integer_format: str = ""  # int32 | int64
    definition: str = ""  # name in data/definitions.json; empty for CRDs
    nullable: bool = False  # CRDs only: null is a value of its own
    # The type that accepts exactly the clean values; made by schema/fast.py when first needed.
    fast_type: Any = field(default=None, compare=False, repr=False)
