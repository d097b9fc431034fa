"""Finds a real kubectl, or builds one.

No registry package contains a kubectl (see README.md), so Go is the only way to get one where
none is installed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from testbed import build

# Older ones need protobuf OpenAPI v2 or SPDY upgrades, which the local cluster does not speak.
OLDEST = (1, 31)


def find_kubectl() -> Path | None:
    """$KUBECTL, the cache, or one on PATH that is new enough; nothing is built."""
    chosen = os.environ.get("KUBECTL")
    if chosen:
        # Taken as it is, whatever its version: the caller asked for this one.
        path = shutil.which(chosen)
        if path is None:
            raise FileNotFoundError(f"KUBECTL={chosen}: wanted a program, found none")
        return Path(path)
    cached = build.find("kubectl")
    if cached is not None:
        return cached
    installed = shutil.which("kubectl")
    if installed is not None and (client_version(Path(installed)) or (0, 0)) >= OLDEST:
        return Path(installed)
    return None


def ensure_kubectl() -> Path | None:
    """As find_kubectl, but builds one when Go is there. None when there is no way to get one."""
    found = find_kubectl()
    if found is not None:
        return found
    try:
        return build.ensure("kubectl")
    except build.BuildError as error:
        print(error, file=sys.stderr)
        return None


def client_version(kubectl: Path) -> tuple[int, int] | None:
    """Major and minor of a kubectl, or None when it does not say."""
    try:
        answer = subprocess.run(
            [kubectl, "version", "--client", "-o", "json"],
            capture_output=True,
            check=True,
            timeout=20,
        )
        version = json.loads(answer.stdout)["clientVersion"]
        # Vendors' builds say "32+".
        return int(version["major"]), int(str(version["minor"]).rstrip("+"))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return None


if __name__ == "__main__":
    path = ensure_kubectl()
    if path is None:
        sys.exit(1)
    print(path)
