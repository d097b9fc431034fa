"""The files of volumes made from ConfigMaps, Secrets and fields: each is replaced atomically."""

import base64
import contextlib
import os
from collections.abc import Generator, Iterator, Mapping, Set
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from kubeclient.objects import Obj
from localkube.kubelet.beneath import directory_in, opened, read_in, replace_in

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 100  # a descriptor is open for each directory on the way


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


def writing(directory: Path, files: Mapping[str, VolumeFile]) -> Generator[None, None, None]:
    """Makes the directory hold exactly these files, one file for each step: a ConfigMap can have
    40,000. Whoever else can write there cannot make us write elsewhere: no link is followed, and
    what is in the way is removed."""
    wanted: set[str] = set()
    with opened(os.open(directory, _DIRECTORY)) as root:
        for path, file in files.items():
            pure = _inside(path)
            wanted.add(str(pure))
            *parents, name = pure.parts
            _write(root, parents, name, file)
            yield
        yield from _removing_others(root, wanted)


def _inside(path: str) -> PurePosixPath:
    """The API server has validated the path. It is checked again, because a file outside of the
    volume could overwrite anything."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts:
        raise BadVolume(f"path {path!r} leads out of the volume")
    if len(pure.parts) > _DEEPEST:
        raise BadVolume(f"path {path!r} has more than {_DEEPEST} parts")
    return pure


def _write(place: int, parents: list[str], name: str, file: VolumeFile) -> None:
    if parents:
        with opened(directory_in(place, parents[0])) as below:
            _write(below, parents[1:], name, file)
        return
    # Programs watch these files: one that has not changed is not touched.
    if read_in(place, name, len(file.content) + 1) != file.content:
        replace_in(place, name, file.content, file.mode & 0o777)


def _removing_others(place: int, wanted: Set[str], above: str = "") -> Iterator[None]:
    """Files and links; directories stay."""
    with os.scandir(place) as entries:
        for entry in entries:
            path = f"{above}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                yield from _removing_below(place, entry.name, wanted, path)
            elif path not in wanted:
                with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                    os.unlink(entry.name, dir_fd=place)
            yield


def _removing_below(place: int, name: str, wanted: Set[str], path: str) -> Iterator[None]:
    if path.count("/") >= _DEEPEST:  # nobody but a stranger made it
        return
    try:
        descriptor = os.open(name, _DIRECTORY, dir_fd=place)
    except OSError:  # somebody has replaced it
        return
    with opened(descriptor) as below:
        yield from _removing_others(below, wanted, f"{path}/")
