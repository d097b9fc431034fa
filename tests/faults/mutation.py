"""Bodies that are almost right: a valid one, with something in it that nobody expects."""

import copy
import random
from collections.abc import Iterator
from typing import Any

Json = Any

STRANGE: tuple[Json, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    1e308,
    2**31 - 1,
    2**31,
    2**62,
    2**63,
    2**64,
    10**40,
    "",
    "x",
    "x" * 300,
    "A b",
    "\u0000",
    "\ud800",
    "\U0001f600",
    "..",
    "/",
    "a/b/c",
    "*",
    "=",
    "$(HOME)",
    "1e1000000",
    "-5",
    "NaN",
    "\u0663",
    "0x10",
    "1Gi",
    "10.0.0.300",
    "::1",
    "2026-13-45T99:99:99Z",
    "Infinity",
    [],
    [[]],
    [None],
    [{}],
    ["x", "x"],
    {},
    {"": ""},
    {"x": {"y": []}},
    {"x": None},
    {"$patch": "delete"},
    {"f:metadata": {}},
)


def places(node: Json, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(node, dict):
        for key, value in node.items():
            yield from places(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from places(value, (*path, index))


def mutated(body: Json, draw: random.Random) -> Json:
    """A copy with one to three strange things in it."""
    body = copy.deepcopy(body)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        *above, last = draw.choice([*places({"": body})][1:])
        holder: Json = {"": body}
        body_holder = holder
        for key in above:
            holder = holder[key]
        _change(holder, last, draw)
        body = body_holder.get("")
    return body


def _change(holder: Json, key: Any, draw: random.Random) -> None:
    match draw.randrange(8):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[draw.choice(("x", "", "metadata", "spec", "$patch", "a.b/c"))] = holder[key]
        case 2 if isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        case 3:
            holder[key] = [holder[key]]
        case 4:
            holder[key] = {"x": holder[key]}
        case _:
            holder[key] = copy.deepcopy(draw.choice(STRANGE))
