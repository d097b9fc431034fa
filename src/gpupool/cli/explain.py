"""`gpupool explain`: says where a pod is, where it would go, or why it waits."""

import datetime
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpupool.cli.exit_codes import DONE, ERROR
from gpupool.cli.known_names import pods, policies
from gpupool.cli.manifests import completed, read_pod_templates, refusal_words
from gpupool.cli.options import (
    POD_WORDS,
    POLICY_HELP,
    access_options,
    chosen_namespace,
    name_and_namespace,
    namespace_option,
)
from gpupool.cli.output.options import Output, output_options
from gpupool.cli.programs import ask_cluster

if TYPE_CHECKING:
    from gpupool.cli.explain_view import Answer
    from gpupool.cli.output.pages import Page
    from gpupool.contract.manifests import PodTemplate
    from gpupool.core.pods import PodRequest
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
    help=POLICY_HELP,
)
@output_options("json", "yaml", headers=False, watch=True)
@access_options
def command(
    pod: str | None,
    namespace: str,
    file: Path | None,
    policy: str,
    output: Output,
    **where: str,
) -> None:
    """Say where a pod is, where it would go, or why it waits.

    POD is its name, or pod/NAME or NAMESPACE/NAME. The answer goes node by node, and card by card.
    With -f, the API server completes the pods of the manifest in a dry run, so it takes what
    `kubectl apply` takes. Nothing is changed. The exit code is 1 if the API server would
    refuse one of them.

    \b
    Examples:
      gpupool explain trainer-0
      gpupool explain -f examples/notebook.yaml
      kubectl get deployment web -o yaml | gpupool explain -f -
    """
    from gpupool.cli.explain_view import REFUSED, page_of
    from gpupool.cli.scheduler import policy_named

    if (pod is None) == (file is None):
        found = "neither" if pod is None else f"both, {pod} and -f {file}"
        raise click.UsageError(f"Name a pod, or a manifest with -f; found {found}.")
    if pod is not None:
        pod, namespace = name_and_namespace(POD_WORDS, pod, namespace)
    namespace = chosen_namespace(namespace, where)
    chosen = policy_named(policy)
    if output.watch:
        if pod is None:
            raise click.UsageError("--watch is for a pod; a manifest does not change by itself.")
        _watch(pod, namespace, chosen, output, where)
        return
    templates = read_pod_templates(file, namespace) if file is not None else []

    async def ask(kube: "Kube") -> "list[Answer]":
        from gpupool.scheduler.follow import EVERYBODY, read_cluster

        state = await read_cluster(kube, chosen, EVERYBODY)
        if pod is not None:
            return [await _existing(kube, state, namespace, pod)]
        return [await _planned(kube, state, template) for template in templates]

    answers = ask_cluster(ask, **where)
    output.show(page_of(answers))
    sys.exit(ERROR if any(answer.verdict == REFUSED for answer in answers) else DONE)


def _watch(pod: str, namespace: str, policy: str, output: Output, where: dict[str, str]) -> None:
    from gpupool.cli.explain_view import page_of
    from gpupool.cli.output.live import follow_mirrors, interruptible
    from gpupool.scheduler.follow import EVERYBODY, empty_state, mirrors_to_show

    async def watch(kube: "Kube") -> None:
        state = empty_state(policy, EVERYBODY)

        async def page() -> "Page":
            return page_of([await _existing(kube, state, namespace, pod)])

        await follow_mirrors(await mirrors_to_show(kube, state), output, page)

    with interruptible():
        ask_cluster(watch, doing="", **where)


async def _existing(kube: "Kube", state: "ClusterState", namespace: str, name: str) -> "Answer":
    from gpupool.cli import named_pods
    from gpupool.cli.explain_view import ENDED, PLACED, Answer
    from gpupool.core.gpu import Inventory
    from gpupool.scheduler.pending import request_with_volumes

    found = await named_pods.get(kube, name, namespace)
    place = state.ledger.assignment(found["metadata"]["uid"])
    if place is not None:
        node = state.cluster.state(place.node)
        inventory = (node.node.inventory if node else None) or Inventory()
        seen = inventory.seen(found["metadata"]["uid"], place.allocation)
        return Answer("Pod", namespace, name, PLACED, place.node, seen)
    phase = (found.get("status") or {}).get("phase")
    if phase in ("Succeeded", "Failed"):
        return Answer("Pod", namespace, name, ENDED, message=phase)
    request = request_with_volumes(found, state.storage)
    now = datetime.datetime.now(datetime.UTC)
    hints = (*words_of_profile(found, now), *words_of_room(found), *_hints(state, found))
    return _outlook(state, ("Pod", namespace, name), request, hints)


def words_of_room(pod: "Obj") -> tuple[str, ...]:
    """What the scheduler says of room that it keeps for the pod, or for others instead of it."""
    from gpupool.scheduler.kept_words import LEFT, RESERVED

    for condition in (pod.get("status") or {}).get("conditions") or ():
        words = str(condition.get("message") or "")
        if condition.get("type") == "PodScheduled" and words == LEFT:
            return (LEFT,)
        if condition.get("type") == "PodScheduled" and RESERVED in words:
            return (words[words.index(RESERVED) :],)
    return ()


def words_of_profile(pod: "Obj", now: "datetime.datetime") -> tuple[str, ...]:
    """That kube-scheduler does not look at a pod that is for our profile."""
    from gpupool.contract.names import EXTENDER_PROFILE
    from gpupool.contract.overlooked import MENDS, is_overlooked

    # Our own scheduler says nothing of pods that are like one of which it has.
    is_ours = pod["spec"].get("schedulerName") == EXTENDER_PROFILE
    if not is_ours or not is_overlooked(pod, now):
        return ()
    return (f"kube-scheduler has not looked at this pod. {MENDS[EXTENDER_PROFILE]}",)


async def _planned(kube: "Kube", state: "ClusterState", template: "PodTemplate") -> "Answer":
    from gpupool.cli.explain_view import REFUSED, Answer
    from gpupool.scheduler.pending import request_with_volumes
    from kubeclient.errors import Refused

    metadata = template.pod["metadata"]
    about = (template.kind, metadata["namespace"], metadata["name"])
    try:
        made = await completed(kube, template)
    except Refused as error:
        return Answer(*about, REFUSED, message=refusal_words(template, error))
    request = request_with_volumes(made, state.storage)
    return _outlook(state, about, request, _hints(state, template.pod, made))


def _outlook(
    state: "ClusterState",
    about: tuple[str, str, str],
    request: "PodRequest",
    hints: tuple[str, ...],
) -> "Answer":
    from gpupool.cli.explain_view import FITS, WAITS, Answer
    from gpupool.scheduler.answers import outlook

    found = outlook(state, request)
    if found.placement is not None:
        node, allocation = found.placement
        return Answer(*about, FITS, node, allocation, outlook=found, hints=hints)
    return Answer(*about, WAITS, message=found.why, outlook=found, hints=hints)


def _hints(state: "ClusterState", pod: "Obj", made: "Obj | None" = None) -> tuple[str, ...]:
    """What admission warned of when the pod was created, or would warn of.

    `made`: the pod after admission, if `pod` is not.
    """
    from gpupool.admission.foreign.translate import RESOURCES
    from gpupool.admission.hints import hints
    from gpupool.contract.names import ANNOTATION_TRANSLATED

    nodes = (state.cluster.at(int(index)).node for index in state.cluster.all_nodes())
    offered = {name for node in nodes for name in node.allocatable}
    note = ((made or pod)["metadata"].get("annotations") or {}).get(ANNOTATION_TRANSLATED)
    if note is None:
        return tuple(hints({**pod, "kind": "Pod"}, offered))
    understood = {name for names in RESOURCES.values() for name in names}
    found = hints({**pod, "kind": "Pod"}, offered | understood)
    return (f"words of another system were understood: {note}", *found)
