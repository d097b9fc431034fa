"""`gpupool explain`: says where a pod is, where it would go, or why it waits."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpupool.cli.options import access_options
from gpupool.cli.programs import ask_cluster

if TYPE_CHECKING:
    from kubeclient.client import Kube
    from kubeclient.objects import Obj

_MAX_BYTES = 1024**2


@click.command("explain")
@click.argument("pod", required=False)
@click.option(
    "-n", "--namespace", default="default", show_default=True, help="Namespace of the pod."
)
@click.option(
    "-f",
    "--filename",
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Explain where the pod of this manifest would go, instead of an existing pod.",
)
@click.option("--policy", default="", metavar="NAME", help="Packing policy to decide with.")
@access_options
def command(pod: str | None, namespace: str, file: Path | None, policy: str, **where: str) -> None:
    """Say where a pod is, where it would go, or why it waits.

    POD is its name. The answer goes node by node, and card by card. Nothing is changed.
    """
    from gpupool.cli.scheduler import policy_named

    if (pod is None) == (file is None):
        raise click.UsageError("Name a pod, or a manifest with -f.")
    wanted = _manifest(file, namespace) if file is not None else None
    chosen = policy_named(policy)

    async def ask(kube: "Kube") -> str:
        from gpupool.scheduler.answers import outlook_words, placed_words
        from gpupool.scheduler.follow import read_cluster
        from gpupool.scheduler.pending import request_with_volumes
        from kubeclient.resources import PODS

        found = wanted or await kube.get(PODS, pod or "", namespace)
        metadata = found["metadata"]
        shown = f"{metadata['namespace']}/{metadata['name']}"
        state = await read_cluster(kube, chosen)
        place = state.ledger.assignment(metadata["uid"])
        if place is not None:
            return placed_words(shown, place.node, place.allocation)
        if (found.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return f"{shown} has ended: {found['status']['phase']}.\n"
        request = request_with_volumes(found, state.storage)
        return outlook_words(state, shown, request)

    click.echo(ask_cluster(ask, **where), nl=False)


def _manifest(file: Path, namespace: str) -> "Obj":
    """The pod of a manifest (a Pod or a workload), with what the API server would add."""
    import yaml

    if file.stat().st_size > _MAX_BYTES:
        raise click.ClickException(f"{file} has more than {_MAX_BYTES} bytes.")
    try:
        document: Any = yaml.load(file.read_bytes(), yaml.CSafeLoader)
        spec = document["spec"]
        template = spec.get("template", document)
        made: Obj = {
            "metadata": {
                "labels": {},
                **(template.get("metadata") or {}),
                "name": document["metadata"]["name"],
                "namespace": document["metadata"].get("namespace", namespace),
                "uid": "manifest",
            },
            "spec": template["spec"],
        }
        for container in made["spec"]["containers"]:
            _fill_requests(container)
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        words = f"{file} is not the manifest of a pod or of a workload: {error}"
        raise click.ClickException(words) from error
    return made


def _fill_requests(container: "Obj") -> None:
    """As the API server does: a limit without a request is also the request."""
    resources = container.get("resources") or {}
    requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    container["resources"] = {**resources, "requests": requests}
