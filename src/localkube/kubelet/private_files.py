"""Directories that only their owner can look into, and their end."""

import os
import shutil
from pathlib import Path


def make_private(directory: Path) -> Path:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def remove_tree(directory: Path) -> None:
    """Also what a program has closed to everybody. Links are removed, not followed."""
    for parent, names, _ in os.walk(directory):
        for name in names:
            path = os.path.join(parent, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(directory, ignore_errors=True)
