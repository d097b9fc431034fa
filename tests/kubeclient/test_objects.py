import tracemalloc

import orjson
import pytest

from kubeclient.objects import kept_json


@pytest.mark.parametrize("length", [10, 700, 5000, 20_000])
def test_what_is_kept_takes_no_more_memory_than_its_text(length: int) -> None:
    obj = {"message": "x" * length}
    tracemalloc.start()
    try:
        kept = [kept_json(obj) for _ in range(100)]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held / len(kept) < len(kept[0]) + 200
    assert orjson.loads(kept[0]) == obj
