"""Where memory comes from while a large request is worked on."""

import ctypes
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from localkube.apiserver.allocation import apart, use_one_heap


def _allocator() -> bytes | None:
    name = ctypes.pythonapi._PyMem_GetCurrentAllocatorName
    name.restype = ctypes.c_char_p
    found: bytes | None = name()
    return found


# Whoever runs the tests may have chosen another one.
usual = pytest.mark.skipif(_allocator() != b"pymalloc", reason="this Python allocates otherwise")


@usual
def test_memory_is_from_the_c_library_until_all_large_requests_are_done() -> None:
    with apart():
        with apart():
            assert _allocator() != b"pymalloc"
        assert _allocator() != b"pymalloc"
    assert _allocator() == b"pymalloc"


@usual
def test_a_request_that_fails_gives_the_allocator_back() -> None:
    with pytest.raises(ZeroDivisionError), apart():
        raise ZeroDivisionError
    assert _allocator() == b"pymalloc"


def test_objects_outlive_the_request_and_are_freed_by_any_thread() -> None:
    def grown(number: int) -> list[object]:
        with apart():
            made: list[object] = []
            for each in range(number):
                made.append({str(each): (each, [each] * (each % 70), "x" * (each % 700))})
            return made

    with ThreadPoolExecutor(4) as threads:
        for made in threads.map(grown, [3_000] * 16):
            made.extend(range(100))
            assert len(made) == 3_100
            del made[::2]


def test_a_tracer_that_is_started_meanwhile_goes_on() -> None:
    program = """
import tracemalloc
from localkube.apiserver.allocation import apart
with apart():
    tracemalloc.start()
for _ in range(2):
    before = tracemalloc.get_traced_memory()[0]
    kept = bytearray(100_000)
    assert tracemalloc.get_traced_memory()[0] - before > 50_000
    del kept
    with apart():
        pass
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("chosen", ["malloc", "debug", "pymalloc_debug"])
def test_another_allocator_is_left_alone(chosen: str) -> None:
    program = """
from localkube.apiserver.allocation import apart
with apart():
    kept = [str(number) * (number % 50) for number in range(10_000)]
del kept
"""
    subprocess.run([sys.executable, "-c", program], env={"PYTHONMALLOC": chosen}, check=True)


def test_a_c_library_without_the_setting_is_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    use_one_heap.__wrapped__()
