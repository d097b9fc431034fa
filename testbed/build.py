#!/usr/bin/env python3
"""Builds the real Kubernetes programs (and etcd) from their Go modules into a cache.

    python3 testbed/build.py              every program
    python3 testbed/build.py kubectl      only this one

Nothing is written into the checkout: the programs land in
${GPUPOOL_CACHE:-${XDG_CACHE_HOME:-~/.cache}/gpupool}/kubernetes/<version>/bin. A folder of ready
programs named by KUBEBUILDER_ASSETS is used before anything is built.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Program:
    """One program: the folder of the go.mod that pins it, and its main package."""

    name: str
    module: str
    package: str
    tags: str = ""


_CONTAINERD = ("containerd", "containerd-shim-runc-v2", "ctr")
PROGRAMS = {
    program.name: program
    for program in (
        Program("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
        *(
            Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}")
            for name in (
                "kube-apiserver",
                "kubectl",
                "kube-controller-manager",
                "kube-scheduler",
                "kubelet",
            )
        ),
        # What a real node needs besides its kubelet: containerd 1.7, or 2 in a folder of its own,
        # because the programs of both have the same names.
        *(
            Program(name, "containerd", f"github.com/containerd/containerd/cmd/{name}")
            for name in _CONTAINERD
        ),
        *(
            Program(
                f"containerd2/{name}",
                "containerd2",
                f"github.com/containerd/containerd/v2/cmd/{name}",
            )
            for name in _CONTAINERD
        ),
    )
}
# What a test wants and no cluster needs. Debian's Prometheus cannot ask Kubernetes what to scrape;
# this one can do nothing else.
BESIDE = {
    "prometheus": Program(
        "prometheus",
        "prometheus",
        "github.com/prometheus/prometheus/cmd/prometheus",
        "remove_all_sd,enable_kubernetes_sd",
    )
}
_ALL = PROGRAMS | BESIDE


class BuildError(RuntimeError):
    """A program is wanted and can neither be found nor be built; the text says why."""


def kubernetes_version() -> str:
    """The release that kubernetes/go.mod pins, which is the one place where it is written."""
    text = (HERE / "kubernetes" / "go.mod").read_text()
    found = re.search(r"k8s\.io/kubernetes (v\d+\.\d+\.\d+)", text)
    if found is None:
        raise BuildError("kubernetes/go.mod: wanted a line `k8s.io/kubernetes vX.Y.Z`, found none")
    return found[1]


def cache_root() -> Path:
    own = os.environ.get("GPUPOOL_CACHE")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "gpupool"


def binary_dir() -> Path:
    return cache_root() / "kubernetes" / kubernetes_version() / "bin"


def find(name: str) -> Path | None:
    """The program in KUBEBUILDER_ASSETS or in the cache, without building anything."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    folders = [Path(assets)] if assets else []
    for folder in [*folders, binary_dir()]:
        candidate = folder / name
        if os.access(candidate, os.X_OK):
            return candidate
    return None


def ensure(name: str, say: Callable[[str], None] | None = None) -> Path:
    """The program's path; built first when it is not there yet. Raises BuildError."""
    found = find(name)
    if found is not None:
        return found
    program = _ALL[name]
    go = _go_for(name)
    folder = binary_dir()
    folder.mkdir(parents=True, exist_ok=True)
    with _lock(folder / ".lock"):
        # Another process may have built it while this one waited for the lock.
        return find(name) or _build(go, program, folder, say or _print)


def _go_for(name: str) -> str:
    go = shutil.which("go")
    if go is None:
        hint = f"; set {name.upper()}=/path to use another" if name == "kubectl" else ""
        hint = hint or "; set KUBEBUILDER_ASSETS=/folder to use ready programs"
        raise BuildError(
            f"go: wanted on PATH to build {name} {kubernetes_version()}, found none{hint}"
        )
    return go


def _build(go: str, program: Program, folder: Path, say: Callable[[str], None]) -> Path:
    target = folder / program.name
    target.parent.mkdir(exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    command = [go, "build", "-v", "-trimpath", "-ldflags", _ldflags(program)]
    command += ["-tags", program.tags, "-o", str(unfinished), program.package]
    started = time.monotonic()
    try:
        _run(command, program, say)
        # Renamed last: a program in the cache is always whole.
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    say(f"{program.name}: built in {time.monotonic() - started:.0f} s: {target}")
    return target


def _run(command: Sequence[str], program: Program, say: Callable[[str], None]) -> None:
    """Runs the go command, telling every few seconds how far it is."""
    environment = os.environ | {"CGO_ENABLED": "0"}
    tail: collections.deque[str] = collections.deque(maxlen=20)
    counts = collections.Counter[str]()
    started = told = time.monotonic()
    say(f"{program.name}: building (the first time takes minutes)")
    with subprocess.Popen(
        command,
        cwd=HERE / program.module,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            tail.append(line.rstrip())
            counts["downloaded" if line.startswith("go: downloading") else "compiled"] += 1
            if time.monotonic() - told >= 10:
                told = time.monotonic()
                say(
                    f"{program.name}: {counts['downloaded']} modules fetched, "
                    f"{counts['compiled']} packages compiled, {told - started:.0f} s"
                )
    if process.returncode != 0:
        raise BuildError(f"{program.name}: go build failed:\n" + "\n".join(tail))


def _ldflags(program: Program) -> str:
    flags = ["-s", "-w"]
    if program.module == "kubernetes":
        version = kubernetes_version()
        major, minor, _ = version.removeprefix("v").split(".")
        stamp = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
        stamp["gitTreeState"] = "clean"
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
            flags += [f"-X {package}.{key}={value}" for key, value in stamp.items()]
    return " ".join(flags)


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Build real Kubernetes programs into a cache.")
    parser.add_argument("programs", nargs="*", metavar="program", help=", ".join(_ALL))
    names = parser.parse_args(arguments).programs or list(_ALL)
    unknown = [name for name in names if name not in _ALL]
    if unknown:
        parser.error(f"unknown program {', '.join(unknown)}; known: {', '.join(_ALL)}")
    try:
        for name in names:
            print(ensure(name), flush=True)
    except BuildError as error:
        _print(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
