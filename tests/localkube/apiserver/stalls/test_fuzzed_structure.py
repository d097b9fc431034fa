"""Bodies of random structure, from small to just below the limits: none keeps the loop."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bench.heavy import APPLY, JSON, MERGE, STRATEGIC, YAML, Heavy
from localkube.apiserver.schema.load import schema_of
from localkube.apiserver.schema.node import Schema, Type
from tests.localkube.apiserver.stalls.watched import Watched

_PODS = "/api/v1/namespaces/default/pods"
_SIZES = st.sampled_from((1, 3, 40, 300, 900, 4_000, 12_000))
_KINDS = (
    ("", "v1", "Pod", _PODS),
    ("", "v1", "Service", "/api/v1/namespaces/default/services"),
    ("", "v1", "ConfigMap", "/api/v1/namespaces/default/configmaps"),
    ("apps", "v1", "Deployment", "/apis/apps/v1/namespaces/default/deployments"),
    ("batch", "v1", "Job", "/apis/batch/v1/namespaces/default/jobs"),
    (
        "networking.k8s.io",
        "v1",
        "NetworkPolicy",
        "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
    ),
)
Draw = Callable[[st.SearchStrategy[Any]], Any]


@st.composite
def _heavy(draw: Draw) -> Heavy:
    """One place of an object is filled with many values, right or wrong."""
    group, version, kind, path = draw(st.sampled_from(_KINDS))
    schema = schema_of(group, version, kind)
    api_version = f"{group}/{version}" if group else version
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "fuzzed"}}
    inner = _filled(draw, schema, draw(_SIZES), 0)
    inner.pop("metadata", None) if draw(st.booleans()) else None
    body = {**inner, **obj}
    media = draw(st.sampled_from((JSON, JSON, YAML, MERGE, STRATEGIC, APPLY)))
    text = json.dumps(body).encode()
    if media in (JSON, YAML):
        return Heavy("POST", f"{path}?dryRun=All", text, media)
    query = "dryRun=All&fieldManager=f" + ("&force=true" if media == APPLY else "")
    return Heavy("PATCH", f"{path}/fuzzed?{query}", text, media)


def _filled(draw: Draw, schema: Schema, many: int, depth: int) -> dict[str, Any]:
    names = sorted(set(schema.fields) - {"apiVersion", "kind"})
    if not names:
        return {}
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    return {name: _value(draw, schema.fields[name], many, depth + 1) for name in chosen}


def _value(draw: Draw, schema: Schema, many: int, depth: int) -> Any:
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from((None, 1, "x", [], {}, [[]], {"a": {}})))
    if schema.type is Type.OBJECT and depth < 6:
        return _filled(draw, schema, many, depth)
    if schema.type is Type.LIST and schema.items is not None:
        one = _value(draw, schema.items, 1, depth + 1)
        if isinstance(one, dict) and draw(st.booleans()):
            return [{**one, "name": f"n{number}"} for number in range(many)]
        return [one] * many
    if schema.type is Type.MAP:
        return {f"k{number}": "v" for number in range(many)}
    if schema.type in (Type.INTEGER, Type.NUMBER, Type.INT_OR_STRING):
        return draw(st.sampled_from((0, 1, -1, 65536, 2**31)))
    if schema.type is Type.BOOLEAN:
        return draw(st.booleans())
    return draw(st.sampled_from(("", "a", "A_", "1", "x" * 300)))


async def _tried(watched: Watched, heavy: Heavy) -> None:
    status, answer = await watched.watched(heavy)
    assert status < 500 or b"failed to create typed patch" in answer, answer[:500]


_COMMON: dict[str, Any] = {
    "deadline": None,
    "phases": (Phase.explicit, Phase.generate),
    "suppress_health_check": list(HealthCheck),
}


@settings(max_examples=25, **_COMMON)
@given(heavy=_heavy())
async def test_no_structure_keeps_the_loop(watched: Watched, heavy: Heavy) -> None:
    await _tried(watched, heavy)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=600, **_COMMON)
@given(heavy=_heavy())
async def test_no_structure_of_many_keeps_the_loop(watched: Watched, heavy: Heavy) -> None:
    await _tried(watched, heavy)
