"""A container with a share of a simulated card: an environment and files for its processes."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpupool.hardware.limiter import LIBRARY, STAND_INS, LimiterFiles, Settings, install
from gpupool.hardware.simdriver import NodeFiles, read_cards
from tests.native.simulated import environment, make_node

SHARE_MIB = 3226
CARD_MIB = 16130
BOTH, PRELOAD, STAND_IN = "both", "preload", "stand-in"
WAYS = (BOTH, PRELOAD, STAND_IN)
DEFAULT_WAY = BOTH


@dataclass(frozen=True, slots=True)
class Container:
    node: NodeFiles
    files: LimiterFiles
    limits: Path
    region: Path
    way: str = DEFAULT_WAY
    mount: Path | None = None  # where the directory of the limit file must be mounted

    def set_limits(self, text: str) -> None:
        """Replaces the file, as the kubelet does, instead of writing to it."""
        new = self.limits.with_name("limits.new")
        new.write_text(text, encoding="ascii")
        new.replace(self.limits)

    def variables(self) -> dict[str, str]:
        plain = {**environment(self.node), "NVIDIA_VISIBLE_DEVICES": "0"}
        limited = self.files.variables(plain)
        if self.way == PRELOAD:
            limited["LD_LIBRARY_PATH"] = plain["LD_LIBRARY_PATH"]
        if self.way == STAND_IN:
            del limited["LD_PRELOAD"]
        return {**plain, **limited}

    def run(
        self, *command: str | Path, extra: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program and waits for it. Programs of the node are found by their name."""
        program = self.node.programs / command[0]
        return subprocess.run(
            [program if program.exists() else command[0], *command[1:]],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**self.variables(), **(extra or {})},
            cwd=self.node.directory,
        )

    def python(self, script: str, **extra: str) -> str:
        """Runs the script, which must succeed, and returns what it prints."""
        done = self.run(sys.executable, "-c", script, extra=extra)
        assert done.returncode == 0, done.stderr
        return done.stdout


def line(node: NodeFiles, mib: int = SHARE_MIB, percent: int = 0, card: int = 0) -> str:
    return f"{read_cards(node)[card].uuid} {mib} {percent}\n"


def make_container(
    directory: Path,
    node: NodeFiles | None = None,
    *,
    way: str = DEFAULT_WAY,
    context_mib: int = 0,
    limits: str | None = None,
    is_mounted: bool = False,
) -> Container:
    """`is_mounted`: the limiter wants the limit file on a mount, as in a real container, which the
    test must make."""
    directory.mkdir(parents=True, exist_ok=True)
    node = node or make_node(directory / "node")
    mount = directory / "root" / "gpupool" if is_mounted else None
    settings = Settings(
        driver=str(node.libraries),
        context_mib=context_mib,
        limits=str((mount or directory) / "limits"),
        limits_mount=str(mount or ""),
        root=next(str(each) for each in directory.resolve().parents if each.is_mount()),
        region=str(directory / "region-1"),
        directory="",
    )
    files = install(directory / "limiter", settings)
    kept = directory / "volume" if is_mounted else directory
    kept.mkdir(exist_ok=True)
    container = Container(node, files, kept / "limits", directory / "region-1", way, mount)
    container.set_limits(line(node) if limits is None else limits)
    assert {path.name for path in files.directory.iterdir()} >= {LIBRARY, *STAND_INS}
    return container
