"""Whether containers of a local cluster have a wall around them on this machine."""

import tempfile
from pathlib import Path

from gpupool.local.home import CannotUse
from localkube.kubelet.wall import missing_wall, no_wall_words


def warning() -> str:
    """What people must know; empty: there is a wall."""
    missing = _missing()
    return f"Warning: {no_wall_words(missing)}" if missing else ""


def require_wall() -> None:
    """Raises CannotUse when this machine allows none."""
    if missing := _missing():
        raise CannotUse(
            f"--sandbox=required: {no_wall_words(missing)} To start without a wall: --sandbox=auto."
        )


def _missing() -> str:
    with tempfile.TemporaryDirectory(prefix="gpupool-") as scratch:
        return missing_wall(Path(scratch))
