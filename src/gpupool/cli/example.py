"""`gpupool example`: applies one of the examples to a local cluster, and shows its pods."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

import gpupool
from gpupool.cli.known_names import examples
from gpupool.cli.options import existing_name_option
from gpupool.cli.output.options import Output, echo, output_options
from gpupool.cli.programs import ask_cluster
from gpupool.cli.progress import Progress, progress
from gpupool.local.home import ClusterDirectory

if TYPE_CHECKING:
    from gpupool.cli.output.pages import Record
    from gpupool.cli.output.table import Table
    from kubeclient.client import Kube
    from kubeclient.objects import Obj

_PATIENCE_S = 60.0
_LOOK_EVERY_S = 0.1
_NAMESPACE = "default"


@click.command("example")
@click.argument("example", required=False, shell_complete=examples)
@click.option(
    "--no-install",
    is_flag=True,
    help="Install nothing. Without JupyterLab, a notebook is a page that lists its cards.",
)
@existing_name_option
@output_options("wide", "json", "yaml", "name")
def command(example: str | None, name: str, no_install: bool, output: Output) -> None:
    """Run one of the examples, and show which cards its pods get.

    Without a name it lists them. They are ordinary manifests: `kubectl delete -f` removes them.
    The first notebook installs JupyterLab into the Python environment of gpupool.

    \b
    Examples:
      gpupool example
      gpupool example shared-gpus
      gpupool example notebook --name training
    """
    known = known_examples()
    if example is None:
        output.show(_list(known))
        return
    if output.format == "name":
        raise click.UsageError("-o name is for the list of examples.")
    if example not in known:
        raise click.ClickException(
            f'There is no example "{example}"; there are {", ".join(known)}.'
        )
    import yaml

    from gpupool.cli.notebook import how_to_open, install_jupyter, notebooks
    from gpupool.cli.which_cluster import chosen_running

    cluster = chosen_running(name)
    manifests = list(yaml.safe_load_all(known[example].read_text(encoding="utf-8")))
    found = notebooks(manifests)
    is_new = bool(found) and not no_install and install_jupyter()
    kubeconfig = str(cluster.kubeconfig)
    with progress(f"Running examples/{example}.yaml") as told:
        pods = ask_cluster(
            lambda kube: _run(kube, manifests, told, start_again=is_new),
            doing="",
            kubeconfig=kubeconfig,
        )
    if not output.is_document:
        echo(f"\nexamples/{example}.yaml:\n\n{_shown(pods, output)}")
    links = ask_cluster(lambda kube: _links(kube, manifests), kubeconfig=kubeconfig)
    if output.is_document:
        output.show(record_of(example, pods, links))
        return
    if waiting := _waiting(pods):
        click.echo(f"\n{waiting_words(waiting[0][0], cluster)}")
        return
    for notebook in found:
        click.echo(f"\n{how_to_open(notebook, cluster.kubeconfig, links)}")


def known_examples() -> dict[str, Path]:
    """The manifests by name."""
    return {path.stem: path for path in sorted(_directory().glob("*.yaml"))}


def _list(known: dict[str, Path]) -> "Table[tuple[str, str]]":
    from gpupool.cli.output.table import Column, Shorten, Table

    columns = (
        Column[tuple[str, str]]("EXAMPLE", lambda row: row[0]),
        Column[tuple[str, str]]("WHAT IT SHOWS", lambda row: row[1], shorten=Shorten.END),
    )
    rows = [(stem, _first_line(path)) for stem, path in known.items()]
    fields = ("name", "description")
    return Table(
        "Example", columns, rows, lambda row: dict(zip(fields, row, strict=True)), lambda r: r[0]
    )


def _shown(pods: list["Obj"], output: Output) -> str:
    """The cards of the pods, and why others wait; indented."""
    import textwrap

    from gpupool.cli.card_tables import shares_table
    from gpupool.cli.output.layout import layout_of_output
    from gpupool.cli.output.pages import Line, Prose
    from gpupool.cli.output.table import Tone

    held = shares_table(pods, with_namespace=False)
    layout = layout_of_output(wide=output.format == "wide", headers=output.headers, indent=2)
    cards = "\n".join(held.lines(layout)) if held.rows else ""
    lines = [
        Line(f"{name} waits: {why}", Tone.CAUTION, toned=len(f"{name} waits:"), indent=2)
        for name, why in _waiting(pods)
    ]
    waits = "\n".join(Prose("", lines).lines(layout))
    shown = "\n\n".join(filter(None, (cards, waits)))
    return textwrap.indent(shown or "Its pods have no cards.", "  ")


def record_of(example: str, pods: list["Obj"], links: list[str]) -> "Record":
    from gpupool.cli.card_tables import shares_table
    from gpupool.cli.output.pages import Record

    fields = {
        "name": example,
        "shares": shares_table(pods, with_namespace=True).document()["items"],
        "waiting": [{"pod": name, "message": why} for name, why in _waiting(pods)],
        "links": links,
    }
    return Record("ExampleRun", (), fields)


def waiting_words(pod: str, cluster: ClusterDirectory) -> str:
    """What to do about a pod that waits."""
    from gpupool.cli.up_view import export_words, own_command

    gpupool = own_command()
    return (
        "Next:\n"
        f"  {export_words(cluster)}\n"
        f"  {gpupool} gpu pods   # who has the cards\n"
        f"  {gpupool} explain {pod}"
    )


def _waiting(pods: list["Obj"]) -> list[tuple[str, str]]:
    return [(pod["metadata"]["name"], _trouble(pod)) for pod in pods if _trouble(pod)]


def _directory() -> Path:
    """Inside the installed package; in a checkout, beside `src`."""
    package = Path(gpupool.__file__).parent
    inside = package / "examples"
    return inside if inside.exists() else package.parent.parent / "examples"


def _first_line(path: Path) -> str:
    return path.read_text(encoding="utf-8").splitlines()[0].removeprefix("#").strip()


async def _run(
    kube: "Kube", manifests: list["Obj"], told: Progress, *, start_again: bool
) -> list["Obj"]:
    """The pods, once each of them runs or waits for a node. `start_again`: pods that run already
    get the program that was installed after their start.

    Pods of an earlier manifest go first: two examples have a notebook of the same name."""
    import asyncio

    from kubeclient.resources import PODS

    if start_again:
        for pod in await _pods(kube, manifests):
            await kube.delete(PODS, pod["metadata"]["name"], _NAMESPACE)
    for manifest in manifests:
        await _apply(kube, manifest)
    clock = asyncio.get_running_loop().time
    deadline = clock() + _PATIENCE_S
    while True:
        has_old = [await _has_old_pods(kube, manifest) for manifest in manifests]
        pods = await _pods(kube, manifests)
        is_done = bool(pods) and all(_is_ready(pod) or _trouble(pod) for pod in pods)
        if any(has_old) and not _waiting(pods):  # one that waits may keep the old one for ever
            is_done = False
        if is_done or clock() > deadline:
            return pods
        told.say(f"{sum(map(_is_ready, pods))} of {len(pods)} pods are ready")
        await asyncio.sleep(_LOOK_EVERY_S)


async def _has_old_pods(kube: "Kube", manifest: "Obj") -> bool:
    from kubeclient.resources import DEPLOYMENTS, STATEFUL_SETS

    resources = {each.kind: each for each in (DEPLOYMENTS, STATEFUL_SETS)}
    if manifest["kind"] not in resources:
        return False
    name = manifest["metadata"]["name"]
    found = await kube.get(resources[manifest["kind"]], name, _NAMESPACE)
    status = found.get("status") or {}
    if status.get("observedGeneration", 0) < found["metadata"].get("generation", 0):
        return True
    return bool(status.get("updatedReplicas", 0) < status.get("replicas", 0))


async def _links(kube: "Kube", manifests: list["Obj"]) -> list[str]:
    """Where the services of the manifests answer."""
    from gpupool.cli.open import link_when_ready

    names = [each["metadata"]["name"] for each in manifests if each["kind"] == "Service"]
    return [await link_when_ready(kube, name, _NAMESPACE) for name in names]


async def _pods(kube: "Kube", manifests: list["Obj"]) -> list["Obj"]:
    """The pods of the manifests, without those that are ending."""
    from kubeclient.resources import PODS

    listed = (await kube.list(PODS, _NAMESPACE)).items
    staying = [pod for pod in listed if "deletionTimestamp" not in pod["metadata"]]
    return [pod for pod in staying if any(_is_of(pod, manifest) for manifest in manifests)]


async def _apply(kube: "Kube", manifest: "Obj") -> None:
    from kubeclient.client import APPLY_PATCH
    from kubeclient.resources import DEPLOYMENTS, PODS, SERVICES, STATEFUL_SETS

    resources = {each.kind: each for each in (DEPLOYMENTS, PODS, SERVICES, STATEFUL_SETS)}
    resource = resources[manifest["kind"]]
    await kube.patch(
        resource.path(_NAMESPACE, manifest["metadata"]["name"]),
        manifest,
        content_type=APPLY_PATCH,
        query={"fieldManager": "gpupool-example", "force": "true"},
    )


def _is_of(pod: "Obj", manifest: "Obj") -> bool:
    name = pod["metadata"]["name"]
    if manifest["kind"] == "Pod":
        return bool(name == manifest["metadata"]["name"])
    selector = (manifest["spec"].get("selector") or {}).get("matchLabels") or {}
    labels = pod["metadata"].get("labels") or {}
    return bool(selector) and selector.items() <= labels.items()


def _condition(pod: "Obj", kind: str) -> "Obj":
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((c for c in conditions if c["type"] == kind), {})


def _is_ready(pod: "Obj") -> bool:
    return _condition(pod, "Ready").get("status") == "True"


def _trouble(pod: "Obj") -> str:
    """Why the pod waits for a node; empty when it does not wait."""
    scheduled = _condition(pod, "PodScheduled")
    if scheduled.get("status") != "False":
        return ""
    return str(scheduled.get("message") or "no scheduler has looked at it yet")
