"""How much one request, one client, and all of them together may take. One value, passed around."""

import msgspec

from gpupool.localcluster.apiserver.http.limits import WireLimits

_KIB = 1024
_MIB = 1024 * _KIB


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    # Sizes of heads and bodies, connections, and the patience with slow clients.
    wire: WireLimits = WireLimits()

    # One object. etcd takes no more either, so what fits here fits on a real cluster.
    object_bytes: int = 3 * _MIB // 2
    # All annotations of one object: Kubernetes' own limit.
    annotation_bytes: int = 256 * _KIB
    # Deeper JSON or YAML is nobody's manifest, and would exhaust the stack of whoever walks it.
    nesting: int = 100
    # Answers to a list that asks for pages; a larger page is cut to this.
    page_items: int = 10_000
    # A selector is parsed and matched for every object of a list.
    selector_bytes: int = 4 * _KIB
    # As in Kubernetes: a JSON patch is applied one operation after the other.
    patch_operations: int = 10_000
    # A custom kind's schema is walked at every write.
    custom_schema_bytes: int = 256 * _KIB

    # A watch holds a connection and a buffer for hours. kubectl and informers need a few dozen.
    watches: int = 500
    watches_per_user: int = 100
    # What a watcher has not read yet. Past this it is cut off; it will list again.
    watch_buffer_bytes: int = 16 * _MIB
    # exec, attach and port-forward: each is a process or a socket of this machine.
    streams: int = 64
    followed_logs: int = 200
    # Writes that wait for the disk. Past this clients are told to come back in a second (429).
    mutations: int = 400
