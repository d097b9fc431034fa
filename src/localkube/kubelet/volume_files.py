"""The files of volumes made from ConfigMaps, Secrets and fields: each is replaced atomically."""

import base64
import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from kubeclient.objects import Obj


class VolumeFile(NamedTuple):
    content: bytes
    mode: int


Files = dict[str, VolumeFile]  # relative path -> file


class BadVolume(Exception):
    """The volume cannot be made. The message is the kubelet's, if it has one for the case."""


def files_of(found: Obj, kind: str, source: Obj, default_mode: int) -> Files:
    """The files of a ConfigMap or Secret: all keys, or those in `items`."""
    data = _data(found, kind)
    mode = source.get("defaultMode") or default_mode
    items = source.get("items")
    if not items:
        return {key: VolumeFile(content, mode) for key, content in data.items()}
    files: Files = {}
    for item in items:
        if item["key"] in data:
            files[item["path"]] = VolumeFile(data[item["key"]], item.get("mode") or mode)
        elif not source.get("optional"):
            what = "config key" if kind == "configmap" else "secret key"
            raise BadVolume(f"references non-existent {what}: {item['key']}")
    return files


def _data(found: Obj, kind: str) -> dict[str, bytes]:
    if kind == "secret":
        return {key: base64.b64decode(text) for key, text in (found.get("data") or {}).items()}
    data = {key: text.encode() for key, text in (found.get("data") or {}).items()}
    binary = found.get("binaryData") or {}
    return data | {key: base64.b64decode(text) for key, text in binary.items()}


def write_files(directory: Path, files: Mapping[str, VolumeFile]) -> None:
    """Makes the directory hold exactly these files."""
    for path, file in files.items():
        _write(directory / _inside(path), file)
    for other in _others(directory, files):
        other.unlink()


def _inside(path: str) -> PurePosixPath:
    """The API server has validated the path. It is checked again, because a file outside of the
    volume could overwrite anything."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        raise BadVolume(f"path {path!r} leads out of the volume")
    return pure


def _write(path: Path, file: VolumeFile) -> None:
    # Programs watch these files: one that has not changed is not touched.
    if path.is_file() and path.read_bytes() == file.content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # No other file has this name: Kubernetes refuses keys and paths that begin with two dots.
    aside = path.with_name(f"..{path.name}.new")
    # Written beside the file and renamed, so that a reader sees the old content or the new one.
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(descriptor, file.mode & 0o777)
        os.write(descriptor, file.content)
    finally:
        os.close(descriptor)
    aside.replace(path)


def _others(directory: Path, files: Mapping[str, VolumeFile]) -> Iterable[Path]:
    wanted = {directory / path for path in files}
    for parent, _, names in os.walk(directory):
        for name in names:
            path = Path(parent) / name
            if path not in wanted:
                yield path
