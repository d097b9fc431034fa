"""Follows deploy/Dockerfile without a Docker daemon: on an overlay of this machine, as root.

This machine's Python stands in for the base image; all else is as the file says: what is copied,
what is run, and with which environment and as whom the result is started. Nothing of it stays.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from testbed.dockerfile import Stage, read_stages

_BUILT = "built"
_PROGRAMS = Path(sys.executable).resolve().parent  # python and pip, of no virtual environment


def run_image(dockerfile: Path, context: Path, commands: Sequence[str]) -> str:
    """Builds it, and says what these commands print in it. Raises RuntimeError."""
    first, last = read_stages(dockerfile.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="gpupool-image-") as folder:
        root = f"{folder}/root"
        lines = [*_overlay(folder), *_build(first, context, root)]
        lines += [_start(last, root, command) for command in commands]
        script = Path(folder, "build.sh")
        script.write_text("\n".join(["set -eu", *lines]) + "\n")
        done = subprocess.run(
            ["unshare", "-m", "/bin/sh", str(script)], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise RuntimeError(f"{dockerfile}: {done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout.partition(f"{_BUILT}\n")[2]


def _overlay(folder: str) -> Iterator[str]:
    yield "mount --make-rprivate /"
    yield f"mkdir {folder}/memory {folder}/root"
    # An overlay's own files must not lie in what it covers.
    yield f"mount -t tmpfs tmpfs {folder}/memory"
    yield f"mkdir {folder}/memory/up {folder}/memory/work"
    layers = f"lowerdir=/,upperdir={folder}/memory/up,workdir={folder}/memory/work"
    yield f"mount -t overlay overlay -o {layers} {folder}/root"
    for part in ("proc", "dev"):
        yield f"mount --rbind /{part} {folder}/root/{part}"
    yield f"chmod o+x {folder}/root/root"  # this machine's Python may lie below root's home


def _build(stage: Stage, context: Path, root: str) -> Iterator[str]:
    inside = "/"
    for step in stage.steps:
        if step.instruction == "WORKDIR":
            inside = step.text
            yield f"mkdir -p {root}{inside}"
        elif step.instruction == "COPY":
            *names, target = step.text.split()
            place = f"{root}{inside}/{target}"
            yield f"mkdir -p {place}"
            for name in names:
                whole = context / name
                yield f"cp -r {whole}{'/.' if whole.is_dir() else ''} {place}/"
        elif step.instruction == "RUN":
            told = f"cd {inside} && {step.text}"
            path = f"PATH={_PROGRAMS}:{os.defpath}"
            yield f"chroot {root} env {path} sh -ec {shlex.quote(told)} >&2"
    yield f"echo {_BUILT}"


def _start(stage: Stage, root: str, command: str) -> str:
    user, environment = stage.last("USER"), stage.last("ENV")
    return f"chroot --userspec={user} {root} env -i {environment} sh -ec {shlex.quote(command)}"
