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
        """Whether the known tail completes the parsed head, which has no spec of its own."""
        return _IN_TAIL.isdisjoint(head)

    def explains(self, obj: Obj) -> bool:
        """Whether the spec of the parsed body came from the new tail: only then is it kept."""
        try:
            head = orjson.loads(self.head)
        except orjson.JSONDecodeError:
            return False
        brought = obj.keys() - head.keys()
        return "spec" in brought and brought <= _IN_TAIL

    def settle(self, obj: Obj) -> None:
        """Called after defaults are applied: sets the cached spec, or caches the new one."""
        if self.spec is not None:
            obj["spec"] = orjson.loads(self.spec)
            return
        if len(_known) >= _MAX_KNOWN:
            # All of them: when each was last used is not recorded, and the next pods fill the cache
            # again.
            _known.clear()
        _known[self.tail] = orjson.dumps(obj["spec"])


def taken_apart(body: bytes) -> Parts | None:
    """The two parts of a JSON body. None if the body is not one to keep: no spec, or too long."""
    start = body.find(_MARK)
    if start < 0 or len(body) - start > _MAX_TAIL_BYTES:
        return None
    tail = body[start:]
    return Parts(body[:start] + b"}", tail, _known.get(tail))
