"""Where the files of a container are, and where the container sees them.

    <directory>/<pod uid>/volumes/<number>
                         /c<index>/<run>.log            of the last two runs
                                  /<run>/root home tmp  of the current run

Paths are made of the pod's uid and of numbers alone, never of names that people choose.
"""

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from kubeclient.objects import Obj
from localkube.kubelet.beneath import LeadsOut, make_beneath, opened
from localkube.kubelet.environment import BadConfig, expand
from localkube.kubelet.node_files import make_private
from localkube.kubelet.sandbox import Bind, View
from localkube.kubelet.state import SPEC_LISTS, Pod
from localkube.kubelet.volumes import LocalVolume
from localkube.removal import remove_tree

HOME = "/root"
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_TERMINATION_LOG = "/dev/termination-log"


def pod_directory(directory: Path, uid: str) -> Path:
    if not UID.fullmatch(uid):
        raise ValueError(f"no uid: {uid!r}")
    return directory / uid


def volumes_directory(directory: Path, uid: str) -> Path:
    """The directory of the pod's own volumes, which are numbered as in the spec."""
    return pod_directory(directory, uid) / "volumes"


def volume_directory(directory: Path, pod: Obj, volume: Obj) -> Path:
    """The directory of one volume, for programs outside of the pod."""
    number = pod["spec"]["volumes"].index(volume)
    return volumes_directory(directory, pod["metadata"]["uid"]) / str(number)


def container_spec(pod: Pod, index: int, obj: Obj) -> Obj:
    container = pod.containers[index]
    listed: Iterable[Obj] = obj["spec"].get(SPEC_LISTS[container.role]) or ()
    return next(given for given in listed if given["name"] == container.name)


class ContainerFiles:
    """The files of one run of a container."""

    def __init__(self, directory: Path, uid: str, index: int, run: int) -> None:
        self._container = pod_directory(directory, uid) / f"c{index}"
        self._run = run
        self.directory = self._container / str(run)
        self.root = self.directory / "root"
        self.home = self.directory / "home"
        self.tmp = self.directory / "tmp"
        self.termination_log = self.directory / "termination-log"

    def log(self, *, previous: bool = False) -> Path:
        return self._container / f"{self._run - previous}.log"

    def make(self) -> None:
        """Makes new directories. Of earlier runs, only the log of the last one stays."""
        make_private(self._container)
        for path in self._container.iterdir():
            number = path.name.partition(".")[0]
            if path.is_dir():
                remove_tree(path)
            elif number.isdigit() and int(number) < self._run - 1:
                path.unlink()
        for path in (self.root, self.home, self.tmp):
            make_private(path)
        self.termination_log.touch(mode=0o600)

    def make_if_missing(self) -> None:
        if not self.termination_log.exists():
            self.make()

    def termination_message(self, limit: int = 4096) -> str:
        # The container may have put a link or a FIFO there.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            with opened(os.open(self.termination_log, flags)) as file:
                return os.read(file, limit).decode("utf-8", "replace")
        except OSError:
            return ""


def binds(
    files: ContainerFiles,
    spec: Obj,
    volumes: Mapping[str, LocalVolume],
    variables: Mapping[str, str],
    home: str,
) -> tuple[Bind, ...]:
    """The bind mounts of a container: home, /tmp, termination log and volumes. `home` is where the
    image has its home directory, which is also at HOME. Raises BadConfig."""
    message_path = spec.get("terminationMessagePath") or _TERMINATION_LOG
    made = [
        *(Bind(str(files.home), place) for place in dict.fromkeys((HOME, home))),
        Bind(str(files.tmp), "/tmp"),
        Bind(str(files.termination_log), message_path),
    ]
    for mount in spec.get("volumeMounts") or ():
        volume = volumes[mount["name"]]
        inside = (*volume.inside, *_part(volume, mount, variables))
        read_only = volume.read_only or bool(mount.get("readOnly"))
        made.append(Bind(str(volume.root), mount["mountPath"], read_only, inside))
    return tuple(made)


def _part(volume: LocalVolume, mount: Obj, variables: Mapping[str, str]) -> tuple[str, ...]:
    """The subPath of the volume, which is made if it is missing. A link that leads out is refused:
    here, for a message at the right time, and again when it is mounted."""
    inside = mount.get("subPath") or expand(mount.get("subPathExpr") or "", variables)
    if not inside:
        return ()
    try:
        with opened(volume.open()) as root:
            os.close(make_beneath(root, inside))
    except LeadsOut as error:
        raise BadConfig(f"subPath {inside!r} leads out of volume {mount['name']!r}") from error
    return (inside,)


def view(
    files: ContainerFiles,
    obj: Obj,
    spec: Obj,
    made: tuple[Bind, ...],
    readable: Iterable[Path],
    hidden: Iterable[Path],
) -> View:
    pod_context = obj["spec"].get("securityContext") or {}
    context = pod_context | (spec.get("securityContext") or {})
    needed = {sys.prefix, sys.base_prefix, *map(str, readable)}
    return View(
        root=str(files.root),
        hostname=hostname(obj),
        uid=context.get("runAsUser") or 0,
        gid=context.get("runAsGroup") or 0,
        binds=made,
        needed=tuple(sorted(needed)),
        hidden=tuple(sorted({os.path.realpath(path) for path in hidden})),
    )


def hostname(obj: Obj) -> str:
    return str(obj["spec"].get("hostname") or obj["metadata"]["name"])[:63]


def link_mounts(files: ContainerFiles, made: Iterable[Bind]) -> list[str]:
    """Where containers have no view of their own: makes links below `root` in place of mounts.
    Returns the mount paths at which the pod's programs will find nothing."""
    elsewhere = []
    for bind in made:
        link = files.root / bind.target.strip("/")
        make_private(link.parent)
        if not link.is_symlink():
            link.symlink_to(Path(bind.source, *bind.inside))
        if bind.target not in (HOME, "/tmp", _TERMINATION_LOG):
            elsewhere.append(bind.target)
    return elsewhere
