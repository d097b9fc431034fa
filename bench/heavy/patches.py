"""Patches of large objects."""

from collections.abc import Callable, Iterator
from typing import Any

from bench.heavy.bodies import (
    APPLY,
    CONFIGMAPS,
    CORE,
    DRY,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    Heavy,
    applied_pod,
    environment,
    json_bytes,
    made_map,
    made_pod,
    map_body,
    pod_body,
)


def patches() -> Iterator[tuple[str, Callable[[], Heavy]]]:
    yield from _patches_1()
    yield from _patches_2()
    yield from _patches_3()
    yield from _patches_4()


def _patches_1() -> Iterator[tuple[str, Callable[[], Heavy]]]:
    one, pod = f"{CONFIGMAPS}/heavy", f"{CORE}/pods/heavy"

    def on_map(media: str, body: Callable[[], bytes], path: str = f"{one}{DRY}") -> Any:
        return lambda: Heavy("PATCH", path, body(), media, before=made_map())

    def on_pod(media: str, body: Callable[[], bytes], path: str = f"{pod}{DRY}") -> Any:
        return lambda: Heavy("PATCH", path, body(), media, before=made_pod())

    other = {f"j{n}": "" for n in range(60_000)}
    yield "merge patch of 60,000 keys", on_map(MERGE, lambda: json_bytes({"data": other}))
    yield "strategic patch of 60,000 keys", on_map(STRATEGIC, lambda: json_bytes({"data": other}))
    yield (
        "strategic patch of 20,000 variables",
        on_pod(
            STRATEGIC,
            lambda: json_bytes(
                {"spec": {"containers": [{"name": "c", "env": environment(20_000)}]}}
            ),
        ),
    )
    yield (
        "strategic patch that deletes 20,000",
        on_pod(
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


def _patches_2() -> Iterator[tuple[str, Callable[[], Heavy]]]:
    one, pod = f"{CONFIGMAPS}/heavy", f"{CORE}/pods/heavy"

    def on_map(media: str, body: Callable[[], bytes], path: str = f"{one}{DRY}") -> Any:
        return lambda: Heavy("PATCH", path, body(), media, before=made_map())

    def on_pod(media: str, body: Callable[[], bytes], path: str = f"{pod}{DRY}") -> Any:
        return lambda: Heavy("PATCH", path, body(), media, before=made_pod())

    yield (
        "strategic patch with an order of 20,000",
        on_pod(
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
        on_map(
            STRATEGIC,
            lambda: json_bytes({"metadata": {"finalizers": [f"a/{n}" for n in range(90_000)]}}),
        ),
    )
    yield (
        "JSON patch of 10,000 copies",
        on_map(
            JSON_PATCH,
            lambda: json_bytes(
                [{"op": "copy", "from": "/data", "path": f"/x{n}"} for n in range(10_000)]
            ),
        ),
    )


def _patches_3() -> Iterator[tuple[str, Callable[[], Heavy]]]:
    one, pod = f"{CONFIGMAPS}/heavy", f"{CORE}/pods/heavy"
    applied = "&fieldManager=second&force=true"

    def on_map(media: str, body: Callable[[], bytes], path: str = f"{one}{DRY}") -> Any:
        return lambda: Heavy("PATCH", path, body(), media, before=made_map())

    def on_pod(media: str, body: Callable[[], bytes], path: str = f"{pod}{DRY}") -> Any:
        return lambda: Heavy("PATCH", path, body(), media, before=made_pod())

    other = {f"j{n}": "" for n in range(60_000)}
    yield (
        "JSON patch of 10,000 additions",
        on_pod(
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
        on_map(
            JSON_PATCH,
            lambda: json_bytes([{"op": "test", "path": "/data", "value": {}}] * 10_000),
        ),
    )
    yield (
        "JSON patch of doubling copies",
        on_map(
            JSON_PATCH,
            lambda: json_bytes(
                [{"op": "add", "path": "/x", "value": {"a": 1}}]
                + [{"op": "copy", "from": "/x", "path": f"/x/y{n}"} for n in range(40)]
            ),
        ),
    )
    yield (
        "apply of 60,000 keys",
        on_map(APPLY, lambda: map_body(data=other), f"{one}{DRY}{applied}"),
    )


def _patches_4() -> Iterator[tuple[str, Callable[[], Heavy]]]:
    one, pod = f"{CONFIGMAPS}/heavy", f"{CORE}/pods/heavy"
    applied = "&fieldManager=second&force=true"

    def on_pod(media: str, body: Callable[[], bytes], path: str = f"{pod}{DRY}") -> Any:
        return lambda: Heavy("PATCH", path, body(), media, before=made_pod())

    other = {f"j{n}": "" for n in range(60_000)}
    yield (
        "apply of 20,000 variables",
        on_pod(APPLY, lambda: applied_pod(20_000), f"{pod}{DRY}{applied}"),
    )
    yield (
        "apply of equal variables",
        on_pod(
            APPLY,
            lambda: pod_body(
                containers=[{"name": "c", "image": "i", "env": [{"name": "E"}] * 45_000}]
            ),
            f"{pod}{DRY}{applied}",
        ),
    )
    yield (
        "apply in conflict over 10,000",
        on_pod(
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
            f"{pod}{DRY}&fieldManager=second",
        ),
    )
    yield (
        "update of a map",
        lambda: Heavy("PUT", f"{one}{DRY}", map_body(data=other), before=made_map()),
    )
