"""The files of volumes made from ConfigMaps, Secrets and fields: each is replaced atomically."""

import base64
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from kubeclient.objects import Obj
from localkube.kubelet.beneath import directory_in, opened, path_of, read_in, replace_in


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
    """Makes the directory hold exactly these files. Whoever else can write there cannot make us
    write elsewhere: no link is followed, and what is in the way is removed."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with opened(os.open(directory, flags)) as root:
        for path, file in files.items():
            *parents, name = _inside(path).parts
            _write(root, parents, name, file)
        _remove_others(root, files)


def _inside(path: str) -> PurePosixPath:
    """The API server has validated the path. It is checked again, because a file outside of the
    volume could overwrite anything."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts:
        raise BadVolume(f"path {path!r} leads out of the volume")
    return pure


def _write(place: int, parents: list[str], name: str, file: VolumeFile) -> None:
    if parents:
        with opened(directory_in(place, parents[0])) as below:
            _write(below, parents[1:], name, file)
        return
    # Programs watch these files: one that has not changed is not touched.
    if read_in(place, name, len(file.content) + 1) != file.content:
        replace_in(place, name, file.content, file.mode & 0o777)


def _remove_others(root: int, files: Mapping[str, VolumeFile]) -> None:
    wanted = {str(_inside(path)) for path in files}
    for parent, names, others, place in os.fwalk(".", dir_fd=root):
        links = [name for name in names if os.path.islink(f"{path_of(place)}/{name}")]
        for name in (*others, *links):
            if os.path.normpath(os.path.join(parent, name)) not in wanted:
                with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                    os.unlink(name, dir_fd=place)
