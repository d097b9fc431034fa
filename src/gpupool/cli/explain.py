"""`gpupool explain`: says where a pod is, where it would go, or why it waits."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from gpupool.cli.exit_codes import DONE, ERROR
from gpupool.cli.known_names import pods, policies
from gpupool.cli.manifests import completed, read_pod_templates
from gpupool.cli.options import access_options, chosen_namespace, namespace_option
from gpupool.cli.programs import ask_cluster

if TYPE_CHECKING:
    from gpupool.contract.manifests import PodTemplate
    from gpupool.scheduler.cluster_state import ClusterState
    from kubeclient.client import Kube
    from kubeclient.objects import Obj


@click.command("explain")
@click.argument("pod", required=False, shell_complete=pods)
@namespace_option("pod")
@click.option(
    "-f",
    "--filename",
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True),
    help="Explain where the pods of this manifest would go; - is standard input.",
)
@click.option(
    "--policy",
    default="",
    metavar="NAME",
    shell_complete=policies,
    help="Packing policy to decide with.",
)
@access_options
def command(pod: str | None, namespace: str, file: Path | None, policy: str, **where: str) -> None:
    """Say where a pod is, where it would go, or why it waits.

    POD is its name. The answer goes node by node, and card by card. With -f, the API server
    completes the pods of the manifest in a dry run, so it takes what `kubectl apply` takes. Nothing
    is changed. The exit code is 1 if the API server would refuse one of them.

    \b
    Examples:
      gpupool explain trainer-0
      gpupool explain -f examples/notebook.yaml
      kubectl get deployment web -o yaml | gpupool explain -f -
    """
    from gpupool.cli.scheduler import policy_named

    if (pod is None) == (file is None):
        raise click.UsageError("Name a pod, or a manifest with -f.")
    namespace = chosen_namespace(namespace, where)
    templates = read_pod_templates(file, namespace) if file is not None else []
    chosen = policy_named(policy)

    async def ask(kube: "Kube") -> list[_Answer]:
        from gpupool.scheduler.follow import read_cluster

        state = await read_cluster(kube, chosen)
        if pod is not None:
            return [_Answer(await _existing(kube, state, namespace, pod))]
        return [await _planned(kube, state, template) for template in templates]

    answers = ask_cluster(ask, **where)
    click.echo("\n".join(answer.text for answer in answers), nl=False)
    sys.exit(ERROR if any(answer.refused for answer in answers) else DONE)


class _Answer(NamedTuple):
    text: str
    refused: bool = False


async def _existing(kube: "Kube", state: "ClusterState", namespace: str, name: str) -> str:
    from gpupool.scheduler.answers import outlook_words, placed_words
    from gpupool.scheduler.pending import request_with_volumes
    from kubeclient.resources import PODS

    found = await kube.get(PODS, name, namespace)
    shown = f"{namespace}/{name}"
    place = state.ledger.assignment(found["metadata"]["uid"])
    if place is not None:
        return placed_words(shown, place.node, place.allocation)
    phase = (found.get("status") or {}).get("phase")
    if phase in ("Succeeded", "Failed"):
        return f"{shown} has ended: {phase}.\n"
    words = outlook_words(state, shown, request_with_volumes(found, state.storage))
    return words + _hints(state, found)


async def _planned(kube: "Kube", state: "ClusterState", template: "PodTemplate") -> _Answer:
    from gpupool.scheduler.answers import outlook_words
    from gpupool.scheduler.pending import request_with_volumes
    from kubeclient.errors import Refused

    metadata = template.pod["metadata"]
    shown = f"{metadata['namespace']}/{metadata['name']}"
    if template.kind != "Pod":
        shown = f"A pod of {template.kind} {shown}"
    try:
        made = await completed(kube, template)
    except Refused as error:
        # The dry run gave the pod a name of its own, which the user has never seen.
        name = metadata["name"]
        words = re.sub(rf'"{re.escape(name)}-[a-z0-9]{{5}}"', lambda _: f'"{name}"', str(error))
        return _Answer(f"{shown} would be refused: {words}\n", refused=True)
    words = outlook_words(state, shown, request_with_volumes(made, state.storage))
    return _Answer(words + _hints(state, template.pod))


def _hints(state: "ClusterState", pod: "Obj") -> str:
    """What admission warned of when the pod was created, or would warn of."""
    from gpupool.admission.hints import hints

    nodes = (state.cluster.at(int(index)).node for index in state.cluster.all_nodes())
    offered = {name for node in nodes for name in node.allocatable}
    found = hints({**pod, "kind": "Pod"}, offered)
    return "".join(f"\nHint: {hint}\n" for hint in found)
