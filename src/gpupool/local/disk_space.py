"""Whether there is room for a cluster's data on the disk, before anything is written."""

import os
from contextlib import suppress
from pathlib import Path

from gpupool.local.home import CannotUse

LEAST_MIB = 32  # a new cluster of eight nodes writes 6 MiB


def check_space(path: Path) -> None:
    """`path` need not exist yet. Raises CannotUse."""
    with suppress(OSError):  # whoever writes there will say it better
        there = next(each for each in (path, *path.parents) if each.exists())
        disk = os.statvfs(there)
        free_mib = disk.f_bavail * disk.f_frsize >> 20
        if free_mib < LEAST_MIB:
            raise CannotUse(
                f"{path}: wanted {LEAST_MIB} MiB of free disk space, found {free_mib} MiB. "
                "Free some, or choose another directory with --data-dir."
            )
