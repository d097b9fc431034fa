"""`gpupool whatif`: says where pods would go if nodes came or went, and changes nothing."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gpupool.cli.exit_codes import DONE, ERROR
from gpupool.cli.known_names import files, nodes, policies
from gpupool.cli.manifests import all_completed, as_created, read_pod_templates
from gpupool.cli.numbers import Whole, told
from gpupool.cli.options import POLICY_HELP, access_options, chosen_namespace, namespace_option
from gpupool.cli.output.options import Output, output_options
from gpupool.cli.programs import ask_cluster
from gpupool.cli.scenario import (
    Objects,
    controller_of,
    ends_with_its_node,
    uid_of,
    whole_state,
    workload_of,
)
from kubeclient.bounded_numbers import bounded_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpupool.contract.manifests import PodTemplate
    from gpupool.scheduler.cluster_state import ClusterState
    from gpupool.scheduler.what_if import Answer, Question
    from kubeclient.client import Kube
    from kubeclient.objects import Obj

_MOST_NODES = 1000  # that are added


class _MoreNodes(click.ParamType[tuple[str, int]]):
    name = "POOL=+N"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        pool, _, count = str(value).partition("=")
        number = bounded_number(count.removeprefix("+"))
        if not pool or number is None or not 0 < number <= _MOST_NODES:
            words = f"wanted POOL=+N with N from 1 to {_MOST_NODES}, as in cgpu=+2"
            self.fail(f'{words}; found "{told(str(value))}".', param, ctx)
        return pool, number


class _Asked(NamedTuple):
    """What the options say."""

    file: Path | None
    namespace: str
    replicas: int | None
    more: tuple[tuple[str, int], ...]
    without: tuple[str, ...]
    snapshot: Path | None
    policy: str


@click.command("whatif")
@click.option(
    "-f",
    "--filename",
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True),
    help="Place the pods of this manifest; - is standard input.",
)
@namespace_option("pods")
@click.option("--replicas", type=Whole(1, 10_000), metavar="N", help="As many of each workload.")
@click.option(
    "--nodes",
    "more",
    type=_MoreNodes(),
    multiple=True,
    help="Add N nodes like those of POOL; may be given several times.",
)
@click.option(
    "--without",
    multiple=True,
    metavar="NODE",
    shell_complete=nodes,
    help="Take this node away, and place its pods again; may be given several times.",
)
@click.option(
    "--snapshot",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    shell_complete=files,
    help="Ask about the cluster in this file (gpupool snapshot), not about a live one.",
)
@click.option("--policy", default="", metavar="NAME", shell_complete=policies, help=POLICY_HELP)
@output_options("json", "yaml", headers=False)
@access_options
def command(output: Output, **given: Any) -> None:
    """Say where pods would go, how many more would fit, and what stops the next one.

    The pods of the manifest come on top of what is there, also of pods that the same workload has
    already. Pods that wait now are tried first, as the scheduler does. Nothing is changed. POOL is
    the pool of a node by its labels (NodePool, ACK, GKE, EKS, AKS, Karpenter), else its instance
    type. The exit code is 1 if not all pods of the manifest fit.

    \b
    Examples:
      gpupool whatif -f examples/notebook.yaml --replicas 8
      gpupool whatif -f examples/notebook.yaml --nodes gpu=+2
      gpupool whatif --without cn-shanghai.192.168.7.157
      gpupool whatif --snapshot cluster.json -f examples/notebook.yaml
    """
    from gpupool.cli.whatif_view import page_of

    asked = _Asked(**{name: given.pop(name) for name in _Asked._fields})
    if asked.file is None and not asked.more and not asked.without:
        raise click.UsageError("Name a manifest with -f, or nodes with --nodes or --without.")
    if asked.replicas is not None and asked.file is None:
        raise click.UsageError("--replicas is for the workloads of a manifest: name it with -f.")
    answer = _answer(asked, given)
    output.show(page_of(answer))
    sys.exit(DONE if answer.all_fit else ERROR)


def _answer(asked: _Asked, where: dict[str, str]) -> "Answer":
    from gpupool.cli.scheduler import policy_named
    from gpupool.scheduler.what_if import UnknownPool, what_if

    policy = policy_named(asked.policy)
    templates = _templates(asked, where)
    objects, pods = _read(asked.snapshot, templates, where)
    state = whole_state(objects, policy)
    question = _question(state, objects, asked)
    workloads = [
        workload_of(state, template, pod, asked.replicas, at)
        for at, (template, pod) in enumerate(zip(templates, pods, strict=True))
    ]
    try:
        return what_if(state, replace(question, workloads=workloads))
    except UnknownPool as error:
        raise click.ClickException(_no_pool(str(error), state)) from error


def _templates(asked: _Asked, where: dict[str, str]) -> "list[PodTemplate]":
    if asked.file is None:
        return []
    # A snapshot has no context whose namespace could be meant.
    inside = asked.namespace or "default" if asked.snapshot else ""
    return read_pod_templates(asked.file, inside or chosen_namespace(asked.namespace, where))


def _read(
    snapshot: Path | None, templates: "Sequence[PodTemplate]", where: dict[str, str]
) -> "tuple[Objects, list[Obj]]":
    """The cluster, and the pods as the API server would create them."""
    if snapshot is not None:
        from gpupool.cli.snapshot import read_snapshot

        return read_snapshot(snapshot), [as_created(template) for template in templates]

    async def ask(kube: "Kube") -> "tuple[Objects, list[Obj]]":
        from gpupool.scheduler.follow import read_objects

        objects = await read_objects(kube)
        return objects, await all_completed(kube, templates)

    return ask_cluster(ask, doing="Reading the cluster", **where)


def _question(state: "ClusterState", objects: "Objects", asked: _Asked) -> "Question":
    from gpupool.scheduler.what_if import Question
    from kubeclient.resources import PODS

    for name in asked.without:
        if state.cluster.state(name) is None:
            where = f"the names in {asked.snapshot}" if asked.snapshot else "kubectl get nodes"
            raise click.ClickException(
                f'--without "{told(name)}": there is no such node. See: {where}.'
            )
    counts: dict[str, int] = {}
    for pool, count in asked.more:
        counts[pool] = counts.get(pool, 0) + count
    going = [pod for pod in objects[PODS] if pod["spec"].get("nodeName") in asked.without]
    return Question(
        without=frozenset(asked.without),
        more=counts,
        bound_to_node=frozenset(uid_of(pod) for pod in going if ends_with_its_node(pod)),
        alone=frozenset(uid_of(pod) for pod in going if not controller_of(pod)),
    )


def _no_pool(pool: str, state: "ClusterState") -> str:
    from gpupool.scheduler.what_if import node_kinds

    known = ", ".join(sorted(node_kinds(state.cluster))) or "none"
    return (
        f"--nodes {pool}: no node of such a pool is there, so nobody knows what a further one "
        f"would be like. Pools with nodes: {known}."
    )
