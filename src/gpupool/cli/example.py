"""`gpupool example`: applies one of the examples to a local cluster, and shows its pods."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

import gpupool
from gpupool.cli.options import name_option
from gpupool.cli.programs import ask_cluster
from gpupool.local.home import home

if TYPE_CHECKING:
    from kubeclient.client import Kube
    from kubeclient.objects import Obj

_PATIENCE_S = 60.0
_LOOK_EVERY_S = 0.1
_NAMESPACE = "default"


@click.command("example")
@click.argument("example", required=False)
@name_option
def command(example: str | None, name: str) -> None:
    """Run one of the examples, and show which cards its pods get.

    Without a name it lists them. They are ordinary manifests: `kubectl delete -f` removes them.
    """
    known = {path.stem: path for path in sorted(_directory().glob("*.yaml"))}
    if example is None:
        click.echo("\n".join(f"{stem:20} {_first_line(path)}" for stem, path in known.items()))
        return
    if example not in known:
        raise click.ClickException(
            f'There is no example "{example}"; there are {", ".join(known)}.'
        )
    cluster = home().existing(name)
    text = known[example].read_text(encoding="utf-8")
    shown = ask_cluster(lambda kube: _run(kube, text), kubeconfig=str(cluster.kubeconfig))
    click.echo(f"\nexamples/{example}.yaml:\n\n{shown}")


def _directory() -> Path:
    """Inside the installed package; in a checkout, beside `src`."""
    package = Path(gpupool.__file__).parent
    inside = package / "examples"
    return inside if inside.exists() else package.parent.parent / "examples"


def _first_line(path: Path) -> str:
    return path.read_text(encoding="utf-8").splitlines()[0].removeprefix("#").strip()


async def _run(kube: "Kube", text: str) -> str:
    import asyncio
    import textwrap

    import yaml

    from gpupool.cli.tables import pods_table
    from kubeclient.resources import PODS

    manifests = list(yaml.safe_load_all(text))
    for manifest in manifests:
        await _apply(kube, manifest)
    clock = asyncio.get_running_loop().time
    deadline = clock() + _PATIENCE_S
    while True:
        listed = (await kube.list(PODS, _NAMESPACE)).items
        pods = [pod for pod in listed if any(_is_of(pod, manifest) for manifest in manifests)]
        waits = "\n".join(_trouble(pod) for pod in pods if _trouble(pod))
        is_done = bool(pods) and all(_is_ready(pod) or _trouble(pod) for pod in pods)
        if is_done or clock() > deadline:
            shown = "\n\n".join(filter(None, (pods_table(pods, with_namespace=False), waits)))
            return textwrap.indent(shown or "Its pods have no cards.", "  ")
        await asyncio.sleep(_LOOK_EVERY_S)


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
    return f"{pod['metadata']['name']} waits: {scheduled.get('message', '')}"
