"""Images made by hand, without a daemon: busybox, and nothing else."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path

PAUSE = "gpupool.test/pause:1"
BUSYBOX = "gpupool.test/busybox:1"


def write_archive(target: Path, busybox: Path) -> None:
    """Both images in one file, as `docker save` would write it."""
    layer = _layer(busybox)
    digest = hashlib.sha256(layer).hexdigest()
    files: dict[str, bytes] = {f"{digest}.tar": layer}
    manifest = []
    for name, command in ((PAUSE, ["/bin/sleep", "2147483647"]), (BUSYBOX, ["/bin/sh"])):
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Cmd": command, "Env": ["PATH=/bin"]},
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
            }
        ).encode()
        path = f"{hashlib.sha256(config).hexdigest()}.json"
        files[path] = config
        manifest.append({"Config": path, "RepoTags": [name], "Layers": [f"{digest}.tar"]})
    files["manifest.json"] = json.dumps(manifest).encode()
    with tarfile.open(target, "w") as archive:
        for path, data in files.items():
            _add(archive, path, data, 0o644)


def _layer(busybox: Path) -> bytes:
    names = subprocess.run(
        [str(busybox), "--list"], capture_output=True, text=True, check=True
    ).stdout.split()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for folder in ("bin", "tmp", "etc"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            layer.addfile(entry)
        _add(layer, "bin/busybox", busybox.read_bytes(), 0o755)
        for name in names:
            if name != "busybox":
                link = tarfile.TarInfo(f"bin/{name}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                layer.addfile(link)
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, path: str, data: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))
