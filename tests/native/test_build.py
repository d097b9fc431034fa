"""The built files run on every supported system, and are not built again without a change."""

import platform
import re
import struct
from pathlib import Path

import pytest

from native import build

MAX_LINES = 400
_PT_TLS = 7
PLACE = build.TARGET / platform.machine()
LIBRARIES = ("lib/libcuda.so.1", "lib/libnvidia-ml.so.1")
PRODUCTS = (*LIBRARIES, "bin/nvidia-smi", "engine/libgpupool-engine.so")


def segment_types(elf: bytes) -> list[int]:
    start, size, count = (
        *struct.unpack_from("<Q", elf, 32),
        *struct.unpack_from("<HH", elf, 54),
    )
    return [struct.unpack_from("<I", elf, start + index * size)[0] for index in range(count)]


def test_an_unchanged_source_is_not_built_again() -> None:
    before = [(PLACE / path).stat().st_mtime_ns for path in PRODUCTS]
    build.build(platform.machine())
    assert [(PLACE / path).stat().st_mtime_ns for path in PRODUCTS] == before


@pytest.mark.parametrize("path", PRODUCTS)
def test_nothing_newer_than_glibc_2_17_is_needed(path: str) -> None:
    needed = re.findall(rb"GLIBC_2\.(\d+)", (PLACE / path).read_bytes())
    assert needed
    assert max(map(int, needed)) <= int(build.GLIBC.partition(".")[2])


@pytest.mark.parametrize("path", LIBRARIES)
def test_the_library_has_no_tls_segment_so_that_static_programs_can_open_it(path: str) -> None:
    assert _PT_TLS not in segment_types((PLACE / path).read_bytes())


@pytest.mark.parametrize("path", PRODUCTS)
def test_the_file_contains_no_path_of_the_build_machine(path: str) -> None:
    assert str(build.HERE).encode() not in (PLACE / path).read_bytes()


def test_no_source_file_is_longer_than_the_limit() -> None:
    sources = [file for end in ("*.c", "*.h") for file in build.HERE.rglob(end)]
    assert len(sources) > 30
    long = {str(file): count for file in sources if (count := lines(file)) > MAX_LINES}
    assert not long


def lines(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())
