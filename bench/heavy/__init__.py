"""Requests that are small to send and large to answer: what one client could hold all others with.

Each stays within the limits of the wire (3 MiB for a body, 8 KiB for a URL). Builders are called
one at a time, because some bodies have three megabytes.
"""

from collections.abc import Callable, Mapping

from bench.heavy import kinds, patches, pods, texts
from bench.heavy.bodies import APPLY, JSON, MERGE, PARTIAL, STRATEGIC, TABLE, YAML, Heavy

__all__ = ["APPLY", "JSON", "MERGE", "STRATEGIC", "YAML", "Heavy", "requests", "with_many_objects"]


def requests() -> Mapping[str, Callable[[], Heavy]]:
    """By name, each built when it is asked for."""
    return dict(pods.pods()) | dict(texts.texts()) | dict(patches.patches()) | dict(kinds.kinds())


def with_many_objects() -> Mapping[str, Heavy]:
    """For a server with tens of thousands of ConfigMaps in the namespace `many`."""
    path = "/api/v1/namespaces/many/configmaps"
    half = ",".join(f"k{n}!%3Dv" for n in range(300))
    return {
        "list": Heavy("GET", path),
        "list as a table": Heavy("GET", path, accept=TABLE),
        "list of metadata": Heavy("GET", path, accept=PARTIAL),
        "list in YAML": Heavy("GET", path, accept=YAML),
        "list by a long selector": Heavy("GET", f"{path}?labelSelector={half}"),
        "list by a field": Heavy("GET", f"{path}?fieldSelector=metadata.name!%3Dx"),
        "pages of 500": Heavy("GET", f"{path}?limit=500"),
        "watch": Heavy("GET", f"{path}?watch=1&timeoutSeconds=2"),
        "watch as a table": Heavy("GET", f"{path}?watch=1&timeoutSeconds=2", accept=TABLE),
        "delete collection": Heavy("DELETE", f"{path}?dryRun=All"),
        "delete collection, really": Heavy("DELETE", path),
    }
