"""Reads the JSON documents in annotations, and bounds every number in them.

Annotations may hold anything: a program of another version, a kubelet's credential or a person with
`kubectl annotate` may have written them. The bounds are far beyond every real machine, and small
enough that the engine's columns (32 bits) and tables can be made of the numbers.
"""

from typing import Annotated, TypeVar

import msgspec

T = TypeVar("T")

MOST_UNITS = 2**20  # of gpu-mem on one card: a TiB in units of a MiB
_MOST_MIB = 2**24  # 16 TiB
# All annotations of an object together are no larger than this, by Kubernetes' rule.
_MOST_BYTES = 256 * 1024

Mib = Annotated[int, msgspec.Meta(ge=0, le=_MOST_MIB)]
UnitMib = Annotated[int, msgspec.Meta(ge=1, le=_MOST_MIB)]
Units = Annotated[int, msgspec.Meta(ge=0, le=MOST_UNITS)]
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**16 - 1)]  # an index, a number of links
NumaNode = Annotated[int, msgspec.Meta(ge=-1, le=2**16 - 1)]
CardUuid = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


def document_of(
    decoder: msgspec.json.Decoder[T],
    text: str,
    wrong: type[ValueError],
    most_bytes: int = _MOST_BYTES,
) -> T:
    """Raises `wrong`."""
    if len(text) > most_bytes:
        raise wrong(f"{len(text)} bytes; at most {most_bytes} are read")
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise wrong(str(error)) from error
    except RecursionError as error:
        raise wrong("nested too deeply") from error
