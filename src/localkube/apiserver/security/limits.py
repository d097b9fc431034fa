"""How much one request, one client, and all of them together may take. One value, passed around."""

import msgspec

from localkube.apiserver.decode.json_text import MAX_DEPTH
from localkube.apiserver.http.limits import WireLimits
from localkube.apiserver.patch.json_patch import MAX_OPERATIONS
from localkube.apiserver.store.store import OBJECT_BYTES
from localkube.apiserver.store.watch_log import WATCHER_BUFFER_BYTES

_KIB = 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    # Sizes of heads and bodies, connections, and the patience with slow clients.
    wire: WireLimits = WireLimits()

    # One object. etcd takes no more either, so what fits here fits on a real cluster.
    object_bytes: int = OBJECT_BYTES
    # All annotations of one object: Kubernetes' own limit.
    annotation_bytes: int = 256 * _KIB
    # Deeper JSON or YAML is nobody's manifest, and would exhaust the stack of whoever walks it.
    nesting: int = MAX_DEPTH
    # Answers to a list that asks for pages; a larger page is cut to this.
    page_items: int = 10_000
    # A selector is parsed and matched for every object of a list.
    selector_bytes: int = 4 * _KIB
    # As in Kubernetes: a JSON patch is applied one operation after the other.
    patch_operations: int = MAX_OPERATIONS

    # A watch holds a connection and a buffer for hours. kubectl and informers need a few dozen.
    watches: int = 500
    watches_per_user: int = 100
    # What a watcher has not read yet. Past this it is cut off; it will list again.
    watch_buffer_bytes: int = WATCHER_BUFFER_BYTES
    # exec, attach and port-forward: each is a process or a socket of this machine. Of these, of
    # followed logs and of watches, one user has half at most (in_flight.py).
    streams: int = 128
    followed_logs: int = 400
    # Writes that wait for the disk. Past this clients are told to come back in a second (429).
    mutations: int = 400
