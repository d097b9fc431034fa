"""Renews the names that the simulated driver exports, from the public headers of the real one.

    pip download --no-deps nvidia-cuda-runtime nvidia-nvml-dev, unpack both into one directory, then
    python -m tools.driver_names DIRECTORY

Only names and the CUDA version that brought each variant are taken: facts that a library with the
same interface has to share.
"""

import re
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

TARGET = Path(__file__).parent.parent / "native" / "simdriver"
_FUNCTION = re.compile(r"\bPFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\b(?=\))")
_NVML = re.compile(r"\bnvmlReturn_t\s+DECLDIR\s+(nvml\w+)")
# Exports of older libraries that newer headers no longer declare.
_NVML_OLDER = (
    *("nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetPciInfo"),
    *("nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetHandleByPciBusId", "nvmlDeviceRemoveGpu"),
    *("nvmlDeviceGetGraphicsRunningProcesses", "nvmlDeviceGetComputeRunningProcesses"),
    *("nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v2"),
    *("nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses_v2"),
    *("nvmlDeviceGetNvLinkRemotePciInfo", "nvmlEventSetWait", "nvmlDeviceGetAttributes"),
    *("nvmlGetBlacklistDeviceCount", "nvmlGetBlacklistDeviceInfoByIndex"),
)


def cuda_entries(header: str) -> Iterable[str]:
    versions: dict[str, set[int]] = defaultdict(set)
    variants: dict[str, set[tuple[int, str]]] = defaultdict(set)
    for name, version, thread in _FUNCTION.findall(header):
        if thread:
            variants[name].add((int(version), thread))
        else:
            versions[name].add(int(version))
    for name in sorted(versions):
        ordered = sorted(versions[name])
        for version in ordered:
            yield f"ENTRY({name}, {version}, 0, {symbol(name, ordered, version)})"
        for version, thread in sorted(variants[name]):
            yield f"ENTRY({name}, {version}, 1, {symbol(name, ordered, version)}{thread})"


def symbol(name: str, versions: Sequence[int], version: int) -> str:
    """The first variant has the plain name, the second _v2, and so on."""
    rank = sum(known <= version for known in versions)
    return name if rank <= 1 else f"{name}_v{rank}"


def nvml_entries(header: str) -> Iterable[str]:
    for name in sorted({*_NVML.findall(header), *_NVML_OLDER}):
        yield f"ENTRY({name})"


def write(path: Path, entries: Iterable[str]) -> None:
    lines = textwrap.fill(
        " ".join(entry.replace(" ", "\0") for entry in entries),
        100,
        break_long_words=False,
        break_on_hyphens=False,
    ).replace("\0", " ")
    path.write_text(f"/* Made by tools/driver_names.py. */\n{lines}\n", encoding="utf-8")


def main() -> None:
    headers = Path(sys.argv[1])
    for name, source, entries in (
        ("cuda/names.inc", "cudaTypedefs.h", cuda_entries),
        ("nvml/names.inc", "nvml.h", nvml_entries),
    ):
        text = next(headers.rglob(source)).read_text(encoding="utf-8")
        write(TARGET / name, entries(text))


if __name__ == "__main__":
    main()
