"""Patches of large objects."""

from collections.abc import Callable

from bench.heavy.bodies import (
    APPLY,
    CONFIGMAPS,
    CORE,
    DRY,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    Heavy,
    Named,
    applied_pod,
    environment,
    json_bytes,
    made_map,
    made_pod,
    map_body,
    pod_body,
)

_MAP, _POD = f"{CONFIGMAPS}/heavy", f"{CORE}/pods/heavy"
_FORCED = "&fieldManager=second&force=true"


def _on_map(
    media: str, body: Callable[[], bytes], path: str = f"{_MAP}{DRY}"
) -> Callable[[], Heavy]:
    return lambda: Heavy("PATCH", path, body(), media, before=made_map())


def _on_pod(
    media: str, body: Callable[[], bytes], path: str = f"{_POD}{DRY}"
) -> Callable[[], Heavy]:
    return lambda: Heavy("PATCH", path, body(), media, before=made_pod())


def _other_keys() -> dict[str, str]:
    """None of them is in the map that is changed."""
    return {f"j{n}": "" for n in range(60_000)}


def patches() -> Named:
    yield from _strategic_patches()
    yield from _json_patches()
    yield from _applies()
    yield (
        "update of a map",
        lambda: Heavy("PUT", f"{_MAP}{DRY}", map_body(data=_other_keys()), before=made_map()),
    )


def _strategic_patches() -> Named:
    yield "merge patch of 60,000 keys", _on_map(MERGE, lambda: json_bytes({"data": _other_keys()}))
    yield (
        "strategic patch of 60,000 keys",
        _on_map(STRATEGIC, lambda: json_bytes({"data": _other_keys()})),
    )
    yield (
        "strategic patch of 20,000 variables",
        _on_pod(
            STRATEGIC,
            lambda: json_bytes(
                {"spec": {"containers": [{"name": "c", "env": environment(20_000)}]}}
            ),
        ),
    )
    yield (
        "strategic patch that deletes 20,000",
        _on_pod(
            STRATEGIC,
            lambda: json_bytes(
                {
                    "spec": {
                        "containers": [
                            {
                                "name": "c",
                                "env": [
                                    {"name": f"E{n}", "$patch": "delete"} for n in range(20_000)
                                ],
                            }
                        ]
                    }
                }
            ),
        ),
    )
    yield (
        "strategic patch with an order of 20,000",
        _on_pod(
            STRATEGIC,
            lambda: json_bytes(
                {
                    "spec": {
                        "containers": [
                            {
                                "name": "c",
                                "$setElementOrder/env": [{"name": f"E{n}"} for n in range(20_000)],
                            }
                        ]
                    }
                }
            ),
        ),
    )
    yield (
        "strategic patch of 90,000 finalizers",
        _on_map(
            STRATEGIC,
            lambda: json_bytes({"metadata": {"finalizers": [f"a/{n}" for n in range(90_000)]}}),
        ),
    )


def _json_patches() -> Named:
    yield (
        "JSON patch of 10,000 copies",
        _on_map(
            JSON_PATCH,
            lambda: json_bytes(
                [{"op": "copy", "from": "/data", "path": f"/x{n}"} for n in range(10_000)]
            ),
        ),
    )
    yield (
        "JSON patch of 10,000 additions",
        _on_pod(
            JSON_PATCH,
            lambda: json_bytes(
                [
                    {"op": "add", "path": "/spec/containers/0/env/0", "value": {"name": f"N{n}"}}
                    for n in range(10_000)
                ]
            ),
        ),
    )
    yield (
        "JSON patch of 10,000 tests",
        _on_map(
            JSON_PATCH,
            lambda: json_bytes([{"op": "test", "path": "/data", "value": {}}] * 10_000),
        ),
    )
    yield (
        "JSON patch of doubling copies",
        _on_map(
            JSON_PATCH,
            lambda: json_bytes(
                [{"op": "add", "path": "/x", "value": {"a": 1}}]
                + [{"op": "copy", "from": "/x", "path": f"/x/y{n}"} for n in range(40)]
            ),
        ),
    )


def _applies() -> Named:
    yield (
        "apply of 60,000 keys",
        _on_map(APPLY, lambda: map_body(data=_other_keys()), f"{_MAP}{DRY}{_FORCED}"),
    )
    yield (
        "apply of 20,000 variables",
        _on_pod(APPLY, lambda: applied_pod(20_000), f"{_POD}{DRY}{_FORCED}"),
    )
    yield (
        "apply of equal variables",
        _on_pod(
            APPLY,
            lambda: pod_body(
                containers=[{"name": "c", "image": "i", "env": [{"name": "E"}] * 45_000}]
            ),
            f"{_POD}{DRY}{_FORCED}",
        ),
    )
    yield (
        "apply in conflict over 10,000",
        _on_pod(
            APPLY,
            lambda: pod_body(
                containers=[
                    {
                        "name": "c",
                        "image": "i",
                        "env": [{"name": f"E{n}", "value": "x"} for n in range(10_000)],
                    }
                ]
            ),
            f"{_POD}{DRY}&fieldManager=second",
        ),
    )
