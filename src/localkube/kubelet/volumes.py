"""The volumes of a pod, as directories of this machine. The table at the end lists the kinds.

Directories have numbers, not the names that people choose. A hostPath is a directory of the
simulated node, not of this machine, unless the cluster's settings allow that path."""

import asyncio
import contextlib
import os
import stat
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from os.path import normpath, realpath
from pathlib import Path

from kubeclient.client import Kube
from kubeclient.errors import NotFound, Refused
from kubeclient.objects import Obj
from kubeclient.resources import (
    CONFIG_MAPS,
    SECRETS,
    SERVICE_ACCOUNTS,
    VOLUME_CLAIMS,
    VOLUMES,
    Resource,
)
from kubeclient.turns import Turns
from localkube.kubelet.beneath import (
    LeadsOut,
    make_beneath,
    open_beneath,
    open_steps,
    open_trusted,
    opened,
)
from localkube.kubelet.environment import BadConfig, field_of, resource_of
from localkube.kubelet.node import LocalNode
from localkube.kubelet.node_files import (
    make_private,
    node_directories,
    node_disk,
    set_aside_all_but,
)
from localkube.kubelet.state import Pod
from localkube.kubelet.volume_files import (
    BadVolume,
    Files,
    VolumeFile,
    files_of,
    writing,
)
from localkube.removal import remove_tree

_MODE = 0o644
_TOKEN_S = 3600
# A source can be named ten thousand times, and all are in memory before the first is written.
_MOST_PROJECTED = 32 << 20


@dataclass(frozen=True, slots=True)
class LocalVolume:
    """A volume as a directory or file of this machine."""

    root: Path  # which no container can replace
    read_only: bool = False
    note: str = ""  # for an event: what is different here
    inside: tuple[str, ...] = ()  # a path below `root` that one can: see beneath.py

    @property
    def path(self) -> Path:
        """For people. Whoever opens it uses `open`."""
        return self.root.joinpath(*self.inside)

    def open(self) -> int:
        """A descriptor (O_PATH). Raises OSError."""
        return open_steps(str(self.root), self.inside)


@dataclass(slots=True)
class Volumes:
    """The volumes of one pod."""

    directory: Path
    by_name: dict[str, LocalVolume] = field(default_factory=dict)
    # By volume and path: the token, and when to request a new one.
    tokens: dict[str, tuple[bytes, float]] = field(default_factory=dict)


class Objects:
    """Reads the objects that pods refer to."""

    def __init__(self, kube: Kube) -> None:
        self.kube = kube

    async def config_map(self, namespace: str, name: str) -> Obj | None:
        return await self.get(CONFIG_MAPS, name, namespace)

    async def secret(self, namespace: str, name: str) -> Obj | None:
        return await self.get(SECRETS, name, namespace)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Obj | None:
        try:
            return await self.kube.get(resource, name, namespace)
        except NotFound:
            return None


@dataclass(frozen=True, slots=True)
class Storage:
    """What volumes are made from."""

    objects: Objects
    directory: Path  # of nodes' disks and persistent volumes, which outlive pods
    allowed: tuple[Path, ...]  # the parts of this machine that pods may see by hostPath


@dataclass(frozen=True, slots=True)
class VolumeRequest:
    """One volume to make or to update."""

    pod: Pod
    obj: Obj
    node: LocalNode
    name: str
    source: Obj
    directory: Path  # its own
    volumes: Volumes
    storage: Storage


async def make_volumes(
    volumes: Volumes, pod: Pod, obj: Obj, node: LocalNode, storage: Storage
) -> None:
    """Makes missing volumes and updates the others. Raises BadVolume, with the volume's name."""
    turns = Turns()
    for number, volume in enumerate(obj["spec"].get("volumes") or ()):
        await turns.next()
        name = volume["name"]
        kind = next((key for key in volume if key != "name"), "emptyDir")
        make = _KINDS.get(kind)
        directory = volumes.directory / str(number)
        source = volume.get(kind) or {}
        request = VolumeRequest(pod, obj, node, name, source, directory, volumes, storage)
        try:
            if make is None:
                raise BadVolume(f"volumes of type {kind} are not supported on local nodes")
            volumes.by_name[name] = await make(request)
        except (BadVolume, BadConfig, OSError) as error:
            raise BadVolume(f'MountVolume.SetUp failed for volume "{name}" : {error}') from error


async def sweep_storage(storage: Storage, nodes: Iterable[str]) -> None:
    """Deletes the directories of nodes and persistent volumes that no longer exist. First it lists
    the directories, and then asks what exists: nodes and volumes are made meanwhile."""
    found = await asyncio.to_thread(node_directories, storage.directory)
    gone = set_aside_all_but(found, nodes)
    found = list(make_private(storage.directory / "volumes").iterdir())
    volumes = await storage.objects.kube.list(VOLUMES)
    known = {volume["metadata"]["uid"] for volume in volumes.items}
    gone += (path for path in found if path.name not in known)
    for path in gone:
        await asyncio.to_thread(remove_tree, path)


async def _empty_dir(request: VolumeRequest) -> LocalVolume:
    return LocalVolume(make_private(request.directory))


async def _config_map(request: VolumeRequest) -> LocalVolume:
    source = request.source
    files = await _object_files(request, "configmap", source["name"], source)
    return await _written(request, files)


async def _secret(request: VolumeRequest) -> LocalVolume:
    source = request.source
    files = await _object_files(request, "secret", source["secretName"], source)
    return await _written(request, files)


async def _downward(request: VolumeRequest) -> LocalVolume:
    return await _written(request, _downward_files(request, request.source, _MODE))


async def _projected(request: VolumeRequest) -> LocalVolume:
    mode = request.source.get("defaultMode") or _MODE
    files: Files = {}
    together = 0
    for part in request.source.get("sources") or ():
        found = await _projection(request, next(iter(part)), part[next(iter(part))], mode)
        together += sum(len(file.content) for file in found.values())
        if together > _MOST_PROJECTED:
            raise BadVolume(f"its sources have more than {_MOST_PROJECTED} bytes together")
        files |= found
    return await _written(request, files)


async def _projection(request: VolumeRequest, kind: str, source: Obj, mode: int) -> Files:
    match kind:
        case "configMap":
            return await _object_files(request, "configmap", source["name"], source, mode)
        case "secret":
            return await _object_files(request, "secret", source["name"], source, mode)
        case "downwardAPI":
            return _downward_files(request, source, mode)
        case "serviceAccountToken":
            return await _token(request, source, mode)
        case _:
            raise BadVolume(f"projections of type {kind} are not supported on local nodes")


async def _object_files(
    request: VolumeRequest, kind: str, name: str, source: Obj, mode: int = _MODE
) -> Files:
    objects = request.storage.objects
    look = objects.config_map if kind == "configmap" else objects.secret
    found = await look(request.pod.namespace, name)
    if found is None:
        if source.get("optional"):
            return {}
        raise BadVolume(f'{kind} "{name}" not found')
    return files_of(found, kind, source, mode)


def _downward_files(request: VolumeRequest, source: Obj, mode: int) -> Files:
    mode = source.get("defaultMode") or mode
    files: Files = {}
    for item in source.get("items") or ():
        if item.get("fieldRef"):
            path = item["fieldRef"]["fieldPath"]
            text = field_of(request.pod, request.obj, request.node, path)
        else:
            first = request.obj["spec"]["containers"][0]
            text = resource_of(request.obj, first, request.node, item["resourceFieldRef"])
        files[item["path"]] = VolumeFile(text.encode(), item.get("mode") or mode)
    return files


async def _token(request: VolumeRequest, source: Obj, mode: int) -> Files:
    """A token of the pod's service account, renewed after 80 % of its lifetime."""
    path: str = source["path"]
    key = f"{request.name}/{path}"
    token, until = request.volumes.tokens.get(key, (b"", 0.0))
    if time.time() < until:
        return {path: VolumeFile(token, mode)}
    lasts_s = source.get("expirationSeconds") or _TOKEN_S
    pod, spec = request.pod, request.obj["spec"]
    asked = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {
            "name": spec.get("serviceAccountName") or "default",
            "namespace": pod.namespace,
        },
        "spec": {
            "audiences": [source["audience"]] if source.get("audience") else [],
            "expirationSeconds": lasts_s,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid},
        },
    }
    try:
        answer = await request.storage.objects.kube.create(SERVICE_ACCOUNTS, asked, "token")
    except Refused as error:
        raise BadVolume(f"failed to fetch token: {error}") from error
    token = answer["status"]["token"].encode()
    request.volumes.tokens[key] = token, time.time() + 0.8 * lasts_s
    return {path: VolumeFile(token, mode)}


async def _written(request: VolumeRequest, files: Files) -> LocalVolume:
    turns = Turns()
    with contextlib.closing(writing(make_private(request.directory), files)) as steps:
        for _ in steps:
            await turns.next()
    return LocalVolume(request.directory, read_only=True)


async def _host_path(request: VolumeRequest) -> LocalVolume:
    return _host_place(request)


def _host_place(request: VolumeRequest) -> LocalVolume:
    if "\0" in request.source["path"]:
        raise BadVolume(f"hostPath {request.source['path']!r} contains a NUL byte")
    path = normpath("/" + request.source["path"].lstrip("/"))
    found = _allowed(path, request.storage)
    if found is not None:
        place, note = found, ""
    else:
        disk = node_disk(request.storage.directory, request.node.name)
        place = disk, path.strip("/")
        note = f"hostPath {path} is a directory of the simulated node, not of this machine"
    _ensure(*place, request.source)
    return LocalVolume(place[0], note=note, inside=_steps(place[1]))


def _steps(inside: str) -> tuple[str, ...]:
    return (inside,) if inside not in ("", ".") else ()


def _allowed(path: str, storage: Storage) -> tuple[Path, str] | None:
    """The allowed part of this machine that contains the path, and the path in it."""
    real = Path(realpath(path))  # Path.resolve raises RuntimeError for links that lead in a circle
    for root in storage.allowed:
        if real.is_relative_to(root.resolve()):
            return root, str(real.relative_to(root.resolve()))
    return None


def _ensure(root: Path, inside: str, source: Obj) -> None:
    """Checks or makes the path as its type says. It is resolved again when it is mounted."""
    kind = source.get("type") or ""
    makes = kind in ("", "DirectoryOrCreate", "FileOrCreate")
    is_file = kind == "FileOrCreate"
    try:
        with opened(open_trusted(root)) as above:
            place = (
                make_beneath(above, inside, is_file=is_file)
                if makes
                else open_beneath(above, inside)
            )
        with opened(place):
            mode = os.fstat(place).st_mode
    except LeadsOut as error:
        raise BadVolume(f"hostPath {source['path']} leads out of {root}") from error
    except (FileNotFoundError, NotADirectoryError):
        mode = 0
    if not _FITS[kind](mode):
        what = _WORDS.get(kind, f"a {kind}")
        raise BadVolume(f"hostPath type check failed: {source['path']} is not {what}")


_WORDS = {
    "Directory": "a directory",
    "DirectoryOrCreate": "a directory",
    "File": "a file",
    "FileOrCreate": "a file",
    "Socket": "a socket",
}
_FITS: dict[str, Callable[[int], bool]] = {
    "": bool,
    "Directory": stat.S_ISDIR,
    "DirectoryOrCreate": stat.S_ISDIR,
    "File": stat.S_ISREG,
    "FileOrCreate": stat.S_ISREG,
    "Socket": stat.S_ISSOCK,
    "CharDevice": stat.S_ISCHR,
    "BlockDevice": stat.S_ISBLK,
}


async def _claim(request: VolumeRequest) -> LocalVolume:
    read_only = bool(request.source.get("readOnly"))
    return await _claimed(request, request.source["claimName"], read_only=read_only)


async def _ephemeral(request: VolumeRequest) -> LocalVolume:
    return await _claimed(request, f"{request.pod.name}-{request.name}", read_only=False)


async def _claimed(request: VolumeRequest, name: str, *, read_only: bool) -> LocalVolume:
    """The volume of a claim. Whatever its source, it is a directory here: the one that it names, if
    the settings allow that, or one of the cluster's."""
    claim = await request.storage.objects.get(VOLUME_CLAIMS, name, request.pod.namespace)
    if claim is None:
        raise BadVolume(f'persistentvolumeclaim "{name}" not found')
    bound = (claim.get("status") or {}).get("phase") == "Bound"
    volume_name = claim["spec"].get("volumeName")
    if not bound or not volume_name:
        raise BadVolume(f'persistentvolumeclaim "{name}" is not bound')
    volume = await request.storage.objects.get(VOLUMES, volume_name)
    if volume is None:
        raise BadVolume(f'persistentvolume "{volume_name}" not found')
    root, inside = _volume_place(volume, request.storage)
    try:
        with opened(open_trusted(make_private(root))) as above:
            os.close(make_beneath(above, inside))
    except LeadsOut as error:
        raise BadVolume(f'persistentvolume "{volume_name}" leads out of {root}') from error
    return LocalVolume(root, read_only=read_only, inside=_steps(inside))


def _volume_place(volume: Obj, storage: Storage) -> tuple[Path, str]:
    spec = volume["spec"]
    path = (spec.get("hostPath") or spec.get("local") or {}).get("path")
    found = _allowed(path, storage) if path else None
    return found or (storage.directory / "volumes" / str(volume["metadata"]["uid"]), "")


_KINDS: dict[str, Callable[[VolumeRequest], Awaitable[LocalVolume]]] = {
    "emptyDir": _empty_dir,
    "configMap": _config_map,
    "secret": _secret,
    "downwardAPI": _downward,
    "projected": _projected,
    "hostPath": _host_path,
    "persistentVolumeClaim": _claim,
    "ephemeral": _ephemeral,
}
