"""Limit ranges can make a small pod large: it is worked on aside, then."""

import orjson
import pytest

from bench.heavy.bodies import CORE, DRY, Heavy, pod_body
from kubeclient.objects import Obj
from tests.localkube.apiserver.stalls.watched import Watched

_CLAIM = orjson.dumps(
    {
        "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
)


async def _limit(watched: Watched, name: str, amounts: int) -> None:
    wide = {f"example.com/{name}-{number}": "1" for number in range(amounts)}
    limit: Obj = {"type": "Container", "default": wide}
    body = {"metadata": {"name": name}, "spec": {"limits": [limit]}}
    await watched.make(f"{CORE}/limitranges", orjson.dumps(body))


@pytest.mark.parametrize(("ranges", "amounts"), [(1, 5000), (10, 3000)])
async def test_a_pod_that_limit_ranges_make_large_leaves_the_loop_to_others(
    watched: Watched, ranges: int, amounts: int
) -> None:
    await watched.call(Heavy("POST", f"{CORE}/pods{DRY}", pod_body()))  # loads what pods need
    for number in range(ranges):
        await _limit(watched, f"l{number}", amounts)
    for _ in range(2):
        status, answer = await watched.watched(Heavy("POST", f"{CORE}/pods{DRY}", pod_body()))
        assert status == 201, answer[:500]
        made = orjson.loads(answer)["spec"]["containers"][0]["resources"]["limits"]
        assert len(made) == ranges * amounts
    path = f"{CORE}/persistentvolumeclaims{DRY}"
    assert (await watched.watched(Heavy("POST", path, _CLAIM)))[0] == 201
