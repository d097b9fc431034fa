"""`gpupool agent`: the agent of one node, as its DaemonSet runs it."""

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpupool.cli.numbers import Whole
from gpupool.cli.options import access_options
from gpupool.cli.programs import run_program
from gpupool.cli.scheduler import address
from gpupool.contract.names import LABEL_DEPLOY_NVIDIA_PLUGIN

if TYPE_CHECKING:
    from gpupool.agent.endpoint import Serve
    from gpupool.agent.pod_files import VolumePath
    from gpupool.agent.walls import Walls
    from gpupool.agent.way_facts import OwnDriver
    from gpupool.core.ways import Way
    from gpupool.hardware.cdi_files import DriverRoot
    from gpupool.hardware.driver import Driver
    from kubeclient.client import Kube
    from kubeclient.kubeletapi.messages import Mount

_UNITS_MIB = {"MiB": 1, "GiB": 1024}


def _unit_mib(context: click.Context, option: click.Parameter, text: str) -> int:
    found = re.fullmatch(r"([1-9]\d{0,5})?(MiB|GiB)", text)
    if found is None:
        raise click.BadParameter(f'wanted GiB, MiB, or a multiple such as 256MiB; found "{text}".')
    return int(found[1] or 1) * _UNITS_MIB[found[2]]


def _node(context: click.Context, option: click.Parameter, name: str) -> str:
    if not name.strip():
        raise click.BadParameter('wanted the name of a node, found "".')
    return name


def _mounts(
    context: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> "tuple[Mount, ...]":
    from kubeclient.kubeletapi.messages import Mount

    made = []
    for text in texts:
        found = re.fullmatch(r"(/[^:]*):(/[^:]*?)(:rw)?", text)
        if found is None:
            raise click.BadParameter(f'wanted /on/the/node:/in/the/container, found "{text}".')
        made.append(Mount(found[2], found[1], read_only=not found[3]))
    return tuple(made)


def _volumes(context: click.Context, option: click.Parameter, path: Path) -> "VolumePath":
    from gpupool.agent.pod_files import kubelet_volumes

    return kubelet_volumes(path)


def _serve(context: click.Context, option: click.Parameter, port: int | None) -> "Serve | None":
    from gpupool.agent.endpoint import on_loopback

    return on_loopback(port) if port is not None else None


def _walls(context: click.Context, option: click.Parameter, cgroups: Path | None) -> "Walls | None":
    from gpupool.agent.leaves import CgroupLeaves
    from gpupool.agent.walls import Walls
    from gpupool.hardware.nvml_limits import NvmlLimits

    return Walls(NvmlLimits(), CgroupLeaves(cgroups)) if cgroups is not None else None


def _way(context: click.Context, option: click.Parameter, text: str) -> "Way | None":
    from gpupool.agent.ways import way_of

    return way_of(text)


def _own_driver(
    context: click.Context, option: click.Parameter, text: str | None
) -> "OwnDriver | None":
    from gpupool.agent.way_facts import OwnDriver
    from gpupool.core.ways import Way

    if text is None:
        return None
    word, _, name = text.partition("=")
    if word == Way.RUNTIME_CLASS and name:
        return OwnDriver(Way.RUNTIME_CLASS, name)
    if text in (Way.RUNTIME, Way.NVIDIA_NRI):
        return OwnDriver(Way(text))
    raise click.BadParameter(f'wanted runtime, runtime-class=NAME or nvidia-nri; found "{text}".')


def _driver_root(
    context: click.Context, option: click.Parameter, text: str | None
) -> tuple[str, Path] | None:
    if text is None:
        return None
    on_node, _, here = text.partition(":")
    if not (on_node.startswith("/") and here.startswith("/")):
        raise click.BadParameter(f'wanted /on/the/node:/here, found "{text}".')
    return on_node, Path(here)


def _switches(context: click.Context, option: click.Parameter, is_on: bool) -> dict[str, str]:
    return {LABEL_DEPLOY_NVIDIA_PLUGIN: "false"} if is_on else {}


@click.command("agent")
@click.option(
    "--node",
    required=True,
    envvar="NODE_NAME",
    show_envvar=True,
    callback=_node,
    help="Name of its node.",
)
@access_options
@click.option(
    "--plugins",
    default="/var/lib/kubelet/device-plugins",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Directory of the kubelet's kubelet.sock.",
)
@click.option(
    "--pod-resources",
    default="/var/lib/kubelet/pod-resources/kubelet.sock",
    show_default=True,
    type=click.Path(path_type=Path),
    help="The kubelet's PodResources socket; need not exist.",
)
@click.option(
    "--pods",
    "volumes",
    default="/var/lib/kubelet/pods",
    show_default=True,
    callback=_volumes,
    type=click.Path(path_type=Path),
    help="Directory of the kubelet's pods, to read how much of their shares they use.",
)
@click.option(
    "--memory-unit",
    "unit_mib",
    default="GiB",
    show_default=True,
    callback=_unit_mib,
    help="Size of one aliyun.com/gpu-mem: GiB, MiB, or a multiple such as 256MiB.",
)
@click.option(
    "--whole-cards/--no-whole-cards",
    default=True,
    help="Offer nvidia.com/gpu, or leave it to another device plugin.  [default: offer it]",
)
@click.option(
    "--switch-off-nvidia-plugin",
    "switches",
    is_flag=True,
    callback=_switches,
    help="Keep the GPU Operator's device plugin off the node, by its own label.",
)
@click.option("--feature-labels", is_flag=True, help="Also set nvidia.com/gpu.* labels.")
@click.option(
    "--xid-policy",
    type=click.Path(path_type=Path),
    help="TOML file that overrides the built-in XID table.",
)
@click.option(
    "--mount",
    "mounts",
    multiple=True,
    callback=_mounts,
    metavar="NODE-PATH:PATH",
    help="Mount for GPU containers: read-only, unless it ends in :rw.",
)
@click.option(
    "--limiter",
    multiple=True,
    callback=_mounts,
    metavar="NODE-PATH:PATH",
    help="Mount for containers with isolated shares only.",
)
@click.option(
    "--install-limiter",
    type=click.Path(path_type=Path),
    metavar="DIRECTORY",
    help="Install the limiter there, and mount it; must be the same path on the node.",
)
@click.option(
    "--driver-libraries",
    default="",
    metavar="DIRECTORY",
    help="Where containers find libcuda.so.1; the limiter puts its own in front of it.",
)
@click.option(
    "--way",
    default="auto",
    show_default=True,
    type=click.Choice(("auto", "runtime", "nri", "mounts", "runtime-class", "nvidia-nri")),
    callback=_way,
    help="How cards get into containers; the node's label gpupool.io/pinned-way comes first.",
)
@click.option(
    "--own-driver",
    callback=_own_driver,
    metavar="WAY",
    help="How the agent's own container asks for the driver: runtime, runtime-class=NAME or "
    "nvidia-nri. If it has it, that way works here.",
)
@click.option(
    "--driver-root",
    "root",
    callback=_driver_root,
    metavar="NODE-PATH:PATH",
    help="Root of the node's driver, and where it is here: to load NVML from it, and to find what "
    "cards need if no CDI file says it.",
)
@click.option(
    "--nri",
    type=click.Path(path_type=Path),
    metavar="SOCKET",
    help="Socket of the container runtime, to put cards into containers as its plugin.",
)
@click.option(
    "--nri-only-checks",
    is_flag=True,
    help="With --nri: put no cards in; only keep containers from starting whose card others did "
    "not put in.",
)
@click.option(
    "--cdi",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIRECTORY",
    help="Where CDI files say what a card needs.  [default: /etc/cdi, /var/run/cdi]",
)
@click.option(
    "--devices",
    default="/dev",
    show_default=True,
    type=click.Path(path_type=Path),
    metavar="DIRECTORY",
    help="With --nri: where /dev of the node is.",
)
@click.option(
    "--cgroups",
    "walls",
    callback=_walls,
    type=click.Path(path_type=Path),
    metavar="DIRECTORY",
    help="The node's cgroup v2 hierarchy: lets drivers from 615 on hold shares themselves.",
)
@click.option(
    "--overuse",
    "evicts",
    default="report",
    show_default=True,
    type=click.Choice(("report", "evict")),
    callback=lambda _context, _option, choice: choice == "evict",
    help="What to do with pods that exceed their share, or run without their card: an event, or "
    "also an eviction.",
)
@click.option(
    "--metrics-port",
    "serve",
    type=Whole(0, 65535),
    metavar="PORT",
    callback=_serve,
    help="Port for metrics and readings on 127.0.0.1; 0: any free one.  [default: none]",
)
@click.option(
    "--metrics-address",
    "scrapers",
    default="",
    metavar="HOST:PORT",
    callback=address,
    help="Address for metrics and readings over HTTPS, for those who show a token that may get "
    "/metrics or /readings.  [default: none]",
)
@click.option(
    "--simulated",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="State file of a simulated driver, instead of this machine's driver.",
)
def command(
    kubeconfig: str,
    context: str,
    simulated: Path | None,
    xid_policy: Path | None,
    install_limiter: Path | None,
    driver_libraries: str,
    **settings: Any,
) -> None:
    """Find a node's GPUs, label the node, and offer them to its kubelet.

    Runs on every GPU node until it is stopped. It keeps no state of its own: all is on the node.

    \b
    Examples:
      gpupool agent --node gpu-1
      gpupool agent --node gpu-1 --memory-unit 256MiB --overuse evict
      gpupool agent --node gpu-1 --no-whole-cards --metrics-port 9400
      gpupool agent --node gpu-1 --nri /var/run/nri/nri.sock
    """
    from gpupool.agent.limiter import LimiterPlace
    from gpupool.agent.missing_cards import pids_of_node
    from gpupool.agent.owners import container_by_cgroup
    from gpupool.agent.run import run_agent
    from gpupool.agent.settings import AgentSettings
    from gpupool.agent.way_facts import control_devices
    from gpupool.agent.xid_policy import BadPolicy, load_policy
    from gpupool.cli.programs import log_to_stderr
    from gpupool.hardware.cdi import DIRECTORIES, Specs
    from gpupool.hardware.cdi_files import DriverRoot
    from gpupool.hardware.driver import DriverReplaced
    from gpupool.hardware.limiter import LimiterError, Settings, check
    from kubeclient.kubeletapi.errors import BadSocketPath

    try:
        if install_limiter is not None:
            check(Settings(driver=driver_libraries))
            settings["install"] = LimiterPlace(install_limiter.absolute(), driver_libraries)
        directories, devices = settings.pop("cdi") or DIRECTORIES, settings.pop("devices")
        root: tuple[str, Path] | None = settings.pop("root")
        driver = DriverRoot(root[0], root[1], devices) if root is not None else None
        made = driver.spec if driver is not None else lambda: None
        settings["cdi"] = Specs(directories, devices, made)
        settings["control_devices"] = control_devices()
        settings["pids"] = pids_of_node(container_by_cgroup)
        told = AgentSettings(policy=load_policy(xid_policy), **settings)

        async def work(kube: "Kube") -> None:
            log_to_stderr()
            await run_agent(told, _driver(simulated, driver), kube)

        # It has little to do: uvloop would be faster, and take more memory.
        loop = asyncio.new_event_loop
        run_program(work, "gpupool-agent", loop, kubeconfig=kubeconfig, context=context)
    except (BadPolicy, BadSocketPath, LimiterError) as error:
        raise click.ClickException(str(error)) from error
    except DriverReplaced as error:
        words = f"The NVIDIA driver has been updated: restart the agent ({error})."
        raise click.ClickException(words) from error


def _driver(simulated: Path | None, root: "DriverRoot | None") -> "Driver":
    if simulated is not None:
        from gpupool.hardware.simulated import SimulatedDriver

        return SimulatedDriver(simulated)
    from gpupool.agent.owners import owner_by_cgroup
    from gpupool.hardware.nvml import NvmlDriver

    load = root.load_nvml if root is not None else lambda: None
    return NvmlDriver(lambda pid: bool(owner_by_cgroup(pid)), load)
