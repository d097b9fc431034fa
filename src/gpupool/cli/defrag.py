"""`gpupool defrag`: plans which pods to move so that larger ones fit; moves them if told to."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gpupool.cli.exit_codes import DONE, ERROR
from gpupool.cli.known_names import policies
from gpupool.cli.manifests import all_completed, read_pod_templates
from gpupool.cli.numbers import Whole
from gpupool.cli.options import POLICY_HELP, access_options, chosen_namespace, namespace_option
from gpupool.cli.output.options import Output, output_options
from gpupool.cli.programs import ask_cluster
from gpupool.cli.scenario import (
    Objects,
    controller_of,
    uid_of,
    whole_state,
    workload_of,
)

if TYPE_CHECKING:
    from gpupool.cli.defrag_view import Proposal
    from gpupool.contract.manifests import PodTemplate
    from gpupool.core.pods import PodRequest
    from gpupool.scheduler.cluster_state import ClusterState
    from kubeclient.client import Kube
    from kubeclient.objects import Obj

_MOST_MOVES = 100


class _Asked(NamedTuple):
    """What the options say."""

    file: Path | None
    namespace: str
    most_moves: int
    apply: bool
    policy: str


@click.command("defrag")
@click.option(
    "-f",
    "--for",
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Make room for the pods of this manifest; - is standard input.",
)
@namespace_option("pods")
@click.option(
    "--max-moves",
    "most_moves",
    type=Whole(1, _MOST_MOVES),
    default=10,
    show_default=True,
    metavar="N",
    help="Move at most so many pods.",
)
@click.option("--apply", is_flag=True, help="Move the pods, one after the other.")
@click.option("--policy", default="", metavar="NAME", shell_complete=policies, help=POLICY_HELP)
@output_options("json", "yaml", headers=False)
@access_options
def command(output: Output, **given: Any) -> None:
    """Plan which pods to move so that a larger one fits; move them if told to.

    Without --for: so that a pod with as many whole cards as possible fits. The plan says what each
    move costs and what all of them gain. Nothing moves without --apply, which evicts one pod after
    the other, sees where its controller's next pod goes, and stops when that is not as planned.
    Pods without a controller, of DaemonSets and of groups stay, and those with the label
    gpupool.io/may-move=false. The exit code is 1 if no moves make room for the pods of --for, or if
    a plan could not be carried out.

    \b
    Examples:
      gpupool defrag
      gpupool defrag --for examples/notebook.yaml --max-moves 3
      gpupool defrag --for examples/notebook.yaml --apply
    """
    from gpupool.cli.defrag_view import page_of

    asked = _Asked(**{name: given.pop(name) for name in _Asked._fields})
    templates: list[PodTemplate] = []
    if asked.file is not None:
        templates = read_pod_templates(asked.file, chosen_namespace(asked.namespace, given))
        _check_asks_for_pods(asked.file, templates)

    async def ask(kube: "Kube") -> "Proposal":
        pods = await all_completed(kube, templates)
        return _proposal(await _objects(kube), templates, pods, asked)

    proposal = ask_cluster(ask, doing="Reading the cluster", **given)
    output.show(page_of(proposal))
    if proposal.plan is None:
        sys.exit(ERROR if asked.file else DONE)
    if asked.apply and proposal.plan.moves:
        from gpupool.cli.defrag_steps import carry_out

        done = carry_out(proposal.plan, proposal.running, given)
        click.echo(done.words, err=True)
        sys.exit(DONE if done.is_complete else ERROR)
    sys.exit(DONE)


async def _objects(kube: "Kube") -> Objects:
    """With the Jobs, if pods that run are of any."""
    from gpupool.scheduler.follow import read_objects
    from gpupool.scheduler.pending import is_done
    from kubeclient.resources import JOBS, PODS

    objects = await read_objects(kube)
    running = (pod for pod in objects[PODS] if pod["spec"].get("nodeName") and not is_done(pod))
    if not any(controller_of(pod) == JOBS.kind for pod in running):
        return objects
    return {**objects, JOBS: (await kube.list(JOBS)).items}


def _check_asks_for_pods(file: Path, templates: "list[PodTemplate]") -> None:
    """Without pods the plan would be the one that is made without a manifest."""
    if not any(template.copies for template in templates):
        names = ", ".join(f"{each.kind} {each.pod['metadata']['name']}" for each in templates)
        raise click.ClickException(
            f"{file}: wanted at least one pod to make room for, found none: "
            f"{names} asks for 0 pods."
        )


def _proposal(
    objects: Objects, templates: "list[PodTemplate]", pods: "list[Obj]", asked: _Asked
) -> "Proposal":
    from gpupool.cli.defrag_retries import budgets_of
    from gpupool.cli.defrag_rules import in_the_way, may_move
    from gpupool.cli.defrag_view import Proposal
    from gpupool.cli.scheduler import policy_named
    from gpupool.engine.defrag import Plan, Rules, larger_job, largest_job, room_for
    from gpupool.scheduler.told_room import told_room
    from kubeclient.resources import JOBS, PODS

    running = frozenset(uid_of(pod) for pod in objects[PODS] if pod["spec"].get("nodeName"))
    state = whole_state(objects, policy_named(asked.policy))
    cluster, policy = state.cluster, state.policy
    wanted = _wanted(state, templates, pods)
    highest = max((pod.priority for pod in wanted), default=None)
    rules = Rules(
        asked.most_moves,
        may_move(objects, highest),
        tuple(state.budgets.values()),
        tuple(budgets_of(objects.get(JOBS, ()), objects[PODS]).values()),
    )
    most = replace(rules, most_moves=_MOST_MOVES)
    # Pods that are more important than those for which room is kept may use it as it is.
    with told_room(state, min((pod.priority for pod in wanted), default=None)):
        before = largest_job(cluster, policy)
        if not wanted:
            found = larger_job(cluster, policy, rules)
            after = found[0] if found else before
            return Proposal((), found[1] if found else None, before, after, running=running)
        plan = room_for(cluster, wanted, policy, rules)
        bold = plan if isinstance(plan, Plan) else room_for(cluster, wanted, policy, most)
        is_kept = not isinstance(bold, Plan) and highest is not None
        why = in_the_way(objects, state, wanted, highest or 0, _MOST_MOVES) if is_kept else ()
    names = tuple(f"{pod.namespace}/{pod.name}" for pod in wanted)
    if not isinstance(plan, Plan):
        enough = len(bold.moves) if isinstance(bold, Plan) else 0
        return Proposal(names, None, before, before, plan.placed, enough, why)
    return Proposal(names, plan, before, before, running=running)


def _wanted(
    state: "ClusterState", templates: "list[PodTemplate]", pods: "list[Obj]"
) -> "tuple[PodRequest, ...]":
    found: list[PodRequest] = []
    for at, (template, pod) in enumerate(zip(templates, pods, strict=True)):
        found += workload_of(state, template, pod, None, at).pods
    return tuple(found)
