"""Pods of one template: what their spec comes to is worked out once.

They are sent with the same spec to the letter, and its types and its defaults depend on nothing
else. So the body of a pod is taken apart where its spec begins. If that tail has come before, only
the head is read, goes the way of every other object with an empty spec, and is then given what the
first one's spec came to:

    {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}    head, closed with a brace
    ,"spec":{"containers":[...]}}                              tail

If the closed head is an object, it ends on the body's first level, and so the tail, which once
ended a body that was right, ends this one as well.
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
