"""Images made by hand, without a daemon.

layers = Layers(); layers.add("busybox", busybox_layer(program))
write_archive(target, layers, [Image((BUSYBOX,), ("busybox",), ("/bin/sh",))])
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PAUSE = "gpupool.test/pause:1"
BUSYBOX = "gpupool.test/busybox:1"


@dataclass(frozen=True)
class Image:
    names: tuple[str, ...]
    layers: tuple[str, ...]  # of the mapping that is written with it, the lowest first
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=lambda: {"PATH": "/bin"})


def small_images() -> list[Image]:
    return [
        Image((PAUSE,), ("busybox",), ("/bin/sleep", "2147483647")),
        Image((BUSYBOX,), ("busybox",), ("/bin/sh",)),
    ]


def write_archive(target: Path, layers: Mapping[str, bytes], images: Iterable[Image]) -> None:
    """All images in one file, as `docker save` would write it."""
    digests = {name: hashlib.sha256(layer).hexdigest() for name, layer in layers.items()}
    manifest = []
    with tarfile.open(target, "w") as archive:
        for name, layer in layers.items():
            add_file(archive, f"{digests[name]}.tar", layer)
        for image in images:
            used = [digests[name] for name in image.layers]
            config = _config(image, used)
            path = f"{hashlib.sha256(config).hexdigest()}.json"
            add_file(archive, path, config)
            tags = [_full(name) for name in image.names]
            files = [f"{digest}.tar" for digest in used]
            manifest.append({"Config": path, "RepoTags": tags, "Layers": files})
        add_file(archive, "manifest.json", json.dumps(manifest).encode())


def names_in(archive: Path) -> list[str]:
    """Of all images in it, as the kubelet asks for them."""
    with tarfile.open(archive) as opened:
        manifest = opened.extractfile("manifest.json")
        assert manifest is not None, archive
        return [name for image in json.load(manifest) for name in image["RepoTags"]]


def _config(image: Image, digests: Sequence[str]) -> bytes:
    environment = [f"{name}={value}" for name, value in image.environment.items()]
    return json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Cmd": list(image.command), "Env": environment},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{each}" for each in digests]},
        }
    ).encode()


def _full(name: str) -> str:
    """As the kubelet asks for it: with a host, and a tag."""
    host, slash, _ = name.partition("/")
    if not slash:
        name = f"docker.io/library/{name}"
    elif not set(host) & {".", ":"}:
        name = f"docker.io/{name}"
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def busybox_layer(busybox: Path) -> bytes:
    names = subprocess.run(
        [str(busybox), "--list"], capture_output=True, text=True, check=True
    ).stdout.split()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for folder in ("bin", "tmp", "etc"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            layer.addfile(entry)
        add_file(layer, "bin/busybox", busybox.read_bytes(), 0o755)
        for name in names:
            if name != "busybox":
                add_link(layer, f"bin/{name}", "busybox")
    return buffer.getvalue()


def add_file(archive: tarfile.TarFile, path: str, data: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))


def add_link(archive: tarfile.TarFile, path: str, target: str) -> None:
    entry = tarfile.TarInfo(path)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    archive.addfile(entry)
