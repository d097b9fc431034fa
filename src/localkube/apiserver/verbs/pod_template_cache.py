"""A cache of pod specs with their defaults, by the bytes that a client sent.

A controller creates many pods of one template: their bodies differ in the metadata and are equal,
byte for byte, from `"spec"` on. The checked types and the defaults of a spec depend on nothing but
the spec. So the body of a pod is cut where its spec begins. If the same tail came before, only the
head is parsed, and the object gets the finished spec of the first pod from the cache:

    {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}    head, closed with a brace
    ,"spec":{"containers":[...]}}                              tail

Why cutting is safe: if the head, closed with a brace, parses as an object, the cut was on the first
level of the body, not inside a string or a nested object. The tail has ended a valid body before,
also cut on the first level, so that head and tail together are valid JSON.
"""

from typing import NamedTuple

import orjson

from kubeclient.objects import Obj

_MARK = b',"spec":{'
_IN_TAIL = frozenset({"spec", "status"})  # a new pod's status counts for nothing
# A client that sends ever new specs, or huge ones, must not fill the memory.
_MAX_KNOWN = 512
_MAX_TAIL_BYTES = 16 * 1024

_known: dict[bytes, bytes] = {}  # tails, and their specs with all defaults


class Parts(NamedTuple):
    head: bytes
    tail: bytes
    spec: bytes | None  # None: the tail has not come before

    def fits(self, head: Obj) -> bool:
        """Whether the tail, which is known, is the rest of what was read of the head."""
        return _IN_TAIL.isdisjoint(head)

    def explains(self, obj: Obj) -> bool:
        """Whether it is the tail, which is new, that has brought the whole object its spec."""
        try:
            head = orjson.loads(self.head)
        except orjson.JSONDecodeError:
            return False
        brought = obj.keys() - head.keys()
        return "spec" in brought and brought <= _IN_TAIL

    def settle(self, obj: Obj) -> None:
        """With the defaults in place: gives it the known spec, or remembers its own."""
        if self.spec is not None:
            obj["spec"] = orjson.loads(self.spec)
            return
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[self.tail] = orjson.dumps(obj["spec"])


def taken_apart(body: bytes) -> Parts | None:
    """`body` is said to be JSON. None: nothing is kept of the like of it."""
    start = body.find(_MARK)
    if start < 0 or len(body) - start > _MAX_TAIL_BYTES:
        return None
    tail = body[start:]
    return Parts(body[:start] + b"}", tail, _known.get(tail))
