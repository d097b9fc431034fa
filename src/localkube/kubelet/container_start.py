"""From a container's spec to its process: volumes, environment, program, files, launch."""

import asyncio
import os
import pty
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from kubeclient.objects import Obj
from localkube.about import PACKAGE
from localkube.kubelet.beneath import path_of
from localkube.kubelet.container_devices import ContainerDevices
from localkube.kubelet.container_files import (
    HOME,
    ContainerFiles,
    binds,
    container_spec,
    hostname,
    link_mounts,
    view,
)
from localkube.kubelet.container_log import STDERR, STDOUT, LogFile
from localkube.kubelet.container_python import make_python
from localkube.kubelet.container_run import ContainerRun, Inside, PodRuns
from localkube.kubelet.descriptors import Writer
from localkube.kubelet.environment import (
    PATH,
    BadConfig,
    container_variables,
    expand_all,
)
from localkube.kubelet.hosted import HostedProgram, HostedPrograms, ProgramContext
from localkube.kubelet.images import (
    Program,
    StandIn,
    image_name,
    image_variables,
    program,
    repository,
)
from localkube.kubelet.launches import Launch, Launches, LaunchFailed
from localkube.kubelet.limits import pod_limits
from localkube.kubelet.node import LocalNode
from localkube.kubelet.node_files import SocketPaths, make_private
from localkube.kubelet.notices import Notices
from localkube.kubelet.output import Output
from localkube.kubelet.pace import Pace
from localkube.kubelet.process_table import MARK
from localkube.kubelet.sandbox import Bind
from localkube.kubelet.settings import FleetSettings
from localkube.kubelet.state import Pod
from localkube.kubelet.volume_files import BadVolume
from localkube.kubelet.volumes import Storage, make_volumes

_PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
_MOST_PORTS = 16


@dataclass(frozen=True, slots=True)
class Starter:
    settings: FleetSettings
    launches: Launches
    notices: Notices
    storage: Storage
    node_of: Callable[[str], LocalNode]
    service_variables: Callable[[str], dict[str, str]]  # of a namespace
    object_of: Callable[[Pod], Awaitable[Obj | None]]
    devices: ContainerDevices
    hosted: HostedPrograms
    sockets: SocketPaths
    pace: Pace

    async def ensure_volumes(self, pod: Pod, runs: PodRuns, obj: Obj) -> None:
        """Makes the pod's volumes, once for all of its containers. Raises BadVolume."""
        async with runs.turn:
            if runs.gone:
                raise BadVolume("the pod was deleted")
            if runs.has_volumes:
                return
            runs.shown = _metadata(obj)
            await make_volumes(runs.volumes, pod, obj, self.node_of(pod.node), self.storage)
            runs.limits = pod_limits(obj)
            runs.has_volumes = True
        if all(self._hosted(obj, container) for container in obj["spec"]["containers"]):
            return  # hosted programs need no warnings about what is simulated
        for volume in runs.volumes.by_name.values():
            if volume.note:
                self._say_once(pod, runs, obj, "HostPathSimulated", volume.note)
        for text in _ignored(obj["spec"]):
            self._say_once(pod, runs, obj, "NotSupported", text)

    async def refresh(self, pod: Pod, runs: PodRuns) -> None:
        obj = await self.object_of(pod)
        if obj is not None:
            async with runs.turn:
                if runs.gone:
                    return
                runs.shown = _metadata(obj)
                await make_volumes(runs.volumes, pod, obj, self.node_of(pod.node), self.storage)

    def is_outdated(self, runs: PodRuns, obj: Obj) -> bool:
        """Whether the pod's volumes show old labels or annotations."""
        return runs.shown is not None and runs.shown != _metadata(obj)

    async def launch(self, pod: Pod, index: int, runs: PodRuns, obj: Obj) -> ContainerRun:
        """Raises BadConfig, LaunchFailed and OSError."""
        spec = container_spec(pod, index, obj)
        container = pod.containers[index]
        _refuse_unsupported(spec)
        await self.devices.pre_start(pod, container.name)
        files = ContainerFiles(self.settings.directory, pod.uid, index, container.restart_count)
        async with runs.turn:
            if runs.gone:
                raise BadVolume("the pod was deleted")
            await _to_the_end(files.make)
        inside, chosen = await self.inside(pod, index, runs, obj, files)
        self._announce(pod, runs, obj, spec, chosen)
        output = Output(
            LogFile(
                files.log(),
                time.time_ns,
                most_bytes=self.settings.log_bytes,
                files=self.settings.log_files,
            ),
            self.pace,
        )
        exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        run = ContainerRun(pod, index, spec, inside, files, output, exited)
        hosted = self._hosted(obj, spec)
        if hosted is not None:
            self.notices.note(pod, obj, "Created", "Container created", container)
            held: list[int] = []
            context = self._program_context(run, runs, held)
            self.hosted.start(run.id, hosted, context, output, held)
            return run
        argv = chosen.argv
        if chosen.stand_in is not None:
            run.is_ours = not chosen.stand_in.runs_users_code
            argv = self._stand_in(chosen.stand_in, spec["image"], chosen.argv)
        launch = Launch(
            inside.container_id,
            inside.container_id,
            argv,
            inside.env,
            inside.cwd,
            inside.view,
            tty=bool(spec.get("tty")),
        )
        self.notices.note(pod, obj, "Created", "Container created", container)
        descriptors: list[int] = []
        try:
            _add_streams(run, descriptors)
            _add_sockets(run, chosen, runs.ports, descriptors)
            run.pid = await self.launches.start(launch, descriptors)
        except BaseException as error:
            while descriptors:
                os.close(descriptors.pop())
            if isinstance(error, LaunchFailed):
                error.text = error.about(argv[0])
                output.say(STDERR, f"localkube: {error.text}")
            run.close()
            raise
        return run

    def _hosted(self, obj: Obj, spec: Obj) -> HostedProgram | None:
        found = self.settings.hosted.get(repository(spec["image"]))
        return found.run if found is not None and found.belongs_to(obj) else None

    def _program_context(self, run: ContainerRun, runs: PodRuns, held: list[int]) -> ProgramContext:
        """`held` gets the descriptors that the mounts lead through."""
        env = run.inside.env
        given = (*(run.spec.get("command") or ()), *(run.spec.get("args") or ()))
        mounts: dict[str, Path] = {}
        for mount in run.spec.get("volumeMounts") or ():
            volume = runs.volumes.by_name[mount["name"]]
            if volume.inside:  # by descriptor: a pod could replace what the path leads to
                held.append(volume.open())
                mounts[mount["mountPath"]] = Path(path_of(held[-1]))
            else:
                mounts[mount["mountPath"]] = self.sockets.short_path(volume.root)
        return ProgramContext(
            node=run.pod.node,
            arguments=tuple(expand_all(given, env)),
            env=env,
            mounts=mounts,
        )

    async def inside(
        self, pod: Pod, index: int, runs: PodRuns, obj: Obj, files: ContainerFiles
    ) -> tuple[Inside, Program]:
        """What a process in the container gets, and the container's own program."""
        spec = container_spec(pod, index, obj)
        container_id = pod.containers[index].container_id or "none"
        node = self.node_of(pod.node)
        own_view = await self.launches.namespaces()
        if self.settings.wall_required and not own_view:
            raise BadConfig(
                "the cluster was started with --sandbox=required, and this machine allows no wall "
                f"around containers: {await self.launches.missing_wall() or 'it is switched off'}"
            )
        given = self._given(pod, obj, spec, files, own_view=own_view)
        given |= self.devices.variables(pod, spec["name"])
        given[MARK] = container_id
        variables = await container_variables(pod, obj, spec, node, given, self.storage.objects)
        added = self.devices.adjustment(pod, obj, spec, variables, own_view=own_view)
        variables |= added.variables
        home = image_variables(spec["image"], self.settings.images).get("HOME", HOME)
        made = binds(files, spec, runs.volumes.by_name, variables, home if own_view else HOME)
        made += self.devices.binds(pod, spec["name"]) + added.binds
        chosen = program(
            spec["image"],
            expand_all(spec.get("command") or (), variables),
            expand_all(spec.get("args") or (), variables),
            self.settings.images,
        )
        cwd = spec.get("workingDir") or ("/" if own_view else str(files.home))
        if own_view:
            # The directory's parent has the cluster's keys and tokens in it.
            hidden = (self.settings.directory.parent, *self.settings.private)
            made += tuple(Bind(str(file), path, True) for path, file in chosen.files.items())
            packages = (PACKAGE, *self.settings.packages)
            seen = view(files, obj, spec, made, (*packages, self._python()), hidden)
            seen = seen._replace(device_files=added.device_files)
            return Inside(container_id, variables, cwd, seen), chosen
        self._link(pod, runs, obj, files, link_mounts(files, made))
        in_place = tuple(str(chosen.files.get(part, part)) for part in chosen.argv)
        chosen = replace(chosen, argv=in_place)
        if spec.get("workingDir"):
            cwd = str(files.root / cwd.strip("/"))
        return Inside(container_id, variables, cwd, None), chosen

    def _given(
        self, pod: Pod, obj: Obj, spec: Obj, files: ContainerFiles, *, own_view: bool
    ) -> dict[str, str]:
        """The variables that every container has; the pod's own may replace them."""
        tools = str(self._python() / "bin")
        path = f"{tools}:{PATH}" if image_name(spec["image"]) == "python" else f"{PATH}:{tools}"
        given = {
            "PATH": path,
            "HOSTNAME": hostname(obj),
            "HOME": HOME,
            "LANG": "C.UTF-8",
            **image_variables(spec["image"], self.settings.images),
        }
        if not own_view:
            # Also in place of the image's own HOME, which is a path of this machine here.
            given |= {"HOME": str(files.home), "TMPDIR": str(files.tmp)}
            given["LOCALKUBE_ROOT"] = str(files.root)
        if spec.get("tty"):
            given["TERM"] = "xterm"
        if obj["spec"].get("enableServiceLinks", True):
            return given | self.service_variables(pod.namespace)
        return given | self.service_variables("")

    def _announce(self, pod: Pod, runs: PodRuns, obj: Obj, spec: Obj, chosen: Program) -> None:
        image = spec["image"]
        container = next(c for c in pod.containers if c.name == spec["name"])
        text = (
            f'Container image "{image}" already present on machine and can be accessed by the pod'
        )
        self.notices.note(pod, obj, "Pulled", text, container)
        if chosen.only_waits and self._hosted(obj, spec) is None:
            text = f'Image "{image}" is not run here: a stand-in waits in its place'
            self._say_once(pod, runs, obj, "SimulatedImage", text)

    def _link(
        self, pod: Pod, runs: PodRuns, obj: Obj, files: ContainerFiles, paths: list[str]
    ) -> None:
        if paths:
            text = (
                "This machine allows no user namespaces, so nothing keeps the container from your "
                f"files, and volumes are not at their mount path: {', '.join(paths)} can be found "
                f"below $LOCALKUBE_ROOT ({files.root})"
            )
            self._say_once(pod, runs, obj, "MountPathElsewhere", text)

    def _say_once(self, pod: Pod, runs: PodRuns, obj: Obj, reason: str, text: str) -> None:
        if text not in runs.said:
            runs.said.add(text)
            self.notices.warn(pod, obj, reason, text)

    def _stand_in(
        self, program: StandIn, image: str, arguments: tuple[str, ...]
    ) -> tuple[str, ...]:
        packages = (PACKAGE, *self.settings.packages)
        roots = os.pathsep.join(dict.fromkeys(str(package.parent) for package in packages))
        # Isolated: PYTHON* variables of the container have no effect on it. Without site-packages,
        # unless it needs them, it starts faster.
        flags = ("-I",) if program.with_packages else ("-I", "-S")
        runner = str(PACKAGE / "kubelet/programs/run_module.py")
        rest = arguments if program.runs_users_code else ()
        given = (program.module, *program.arguments, image, *rest)
        return (sys.executable, *flags, runner, image_name(image), roots, *given)

    def _python(self) -> Path:
        """A virtual environment for containers; its programs are in `bin`."""
        return make_python(make_private(self.settings.directory / "python"))


async def _to_the_end(work: Callable[[], None]) -> None:
    """In a thread, which cannot be cancelled: whoever is cancelled here waits for it first."""
    thread = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(thread)
    except asyncio.CancelledError:
        await asyncio.wait([thread])
        raise


def _add_streams(run: ContainerRun, descriptors: list[int]) -> None:
    """Adds descriptors for the program's stdin, stdout and stderr. The run keeps their other
    ends."""
    if run.spec.get("tty"):
        ours, theirs = pty.openpty()
        descriptors.append(theirs)
        run.output.read(ours, STDOUT)
        # Each user of the terminal gets a descriptor of its own, because each closes its own.
        run.terminal = os.dup(ours)
        if run.spec.get("stdin"):
            run.stdin = Writer(os.dup(ours))
        descriptors.append(os.dup(theirs))
        descriptors.append(os.dup(theirs))
        return
    if run.spec.get("stdin"):
        theirs, ours = os.pipe()
        descriptors.append(theirs)
        run.stdin = Writer(ours)
    else:
        descriptors.append(os.open(os.devnull, os.O_RDONLY))
    for stream in (STDOUT, STDERR):
        ours, theirs = os.pipe()
        descriptors.append(theirs)
        run.output.read(ours, stream)


def _add_sockets(
    run: ContainerRun, chosen: Program, ports: dict[int, int], descriptors: list[int]
) -> None:
    """Adds listening sockets for a stand-in. It listens on free ports, not on those of the pod: two
    pods may have the same port, and an ordinary user may not open port 80. `ports` gets the port on
    this machine for each port of the pod."""
    if chosen.stand_in is None:
        return
    declared = run.spec.get("ports") or ()
    wanted = [p["containerPort"] for p in declared if p.get("protocol", "TCP") == "TCP"]
    if not wanted and chosen.stand_in.port is not None:
        wanted = [chosen.stand_in.port]
    for port in wanted[:_MOST_PORTS]:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            ports[port] = listening.getsockname()[1]
            descriptors.append(os.dup(listening.fileno()))
    run.inside.env["LISTEN_FDS"] = str(len(wanted[:_MOST_PORTS]))


def _refuse_unsupported(spec: Obj) -> None:
    for key in _PROBES:
        if (spec.get(key) or {}).get("grpc"):
            raise BadConfig(f"{key}.grpc is not supported on local nodes")


def _ignored(spec: Obj) -> list[str]:
    """Warnings about settings that have no effect on processes of an ordinary user."""
    texts = [
        f"spec.{key} has no effect on local nodes"
        for key in ("hostPID", "hostIPC")
        if spec.get(key)
    ]
    every = (*spec["containers"], *(spec.get("initContainers") or ()))
    if any((c.get("securityContext") or {}).get("privileged") for c in every):
        texts.append(
            "securityContext.privileged has no effect on local nodes: containers are processes of "
            "the user who runs the cluster"
        )
    return texts


def _metadata(obj: Obj) -> object:
    """The metadata that can change and that downwardAPI volumes may show."""
    metadata = obj["metadata"]
    return metadata.get("labels"), metadata.get("annotations")
