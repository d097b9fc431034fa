"""`gpupool migrate`: says what workloads of other GPU systems would become here."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpupool.cli.exit_codes import DONE, ERROR
from gpupool.cli.manifests import completed, read_pod_templates
from gpupool.cli.options import access_options, chosen_namespace, namespace_option
from gpupool.cli.output.options import Output, output_options
from gpupool.cli.programs import ask_cluster

if TYPE_CHECKING:
    from gpupool.cli.migration import Group, Plan
    from gpupool.contract.manifests import PodTemplate
    from kubeclient.client import Kube


@click.command("migrate")
@click.option(
    "-f",
    "--filename",
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True),
    help="Read the workloads of this manifest, not those of the cluster; - is standard input.",
)
@namespace_option("workloads")
@click.option("-A", "--all-namespaces", is_flag=True, help="Read the pods of all namespaces.")
@output_options("json", "yaml", headers=False)
@access_options
def command(
    file: Path | None, namespace: str, all_namespaces: bool, output: Output, **where: str
) -> None:
    """Say what workloads of other GPU systems would become here, and whether they fit.

    Understood are requests made for HAMi, volcano-vgpu, KAI, gpu-fractioning and newer ACK. Reads
    the pods of the cluster, or a manifest, and prints what each workload would ask for, on which
    nodes its pods would run, which would wait or be refused and why, and the order of steps.
    Nothing is changed. The exit code is 1 if a workload would be refused, or does not fit.

    \b
    Examples:
      gpupool migrate --all-namespaces
      gpupool migrate -n research
      gpupool migrate -f examples/notebook.yaml
      kubectl get deployments -A -o yaml | gpupool migrate -f - -o json
    """
    from gpupool.cli.migrate_view import page_of

    if file is not None and all_namespaces:
        raise click.UsageError("Give a manifest with -f, or --all-namespaces, not both.")
    if all_namespaces and namespace:
        raise click.UsageError("Give a namespace with -n, or --all-namespaces, not both.")
    namespace = "" if all_namespaces else chosen_namespace(namespace, where)
    templates = read_pod_templates(file, namespace) if file is not None else None

    async def ask(kube: "Kube") -> "Plan":
        return await _plan(kube, namespace, templates)

    plan = ask_cluster(ask, doing="Reading the cluster", **where)
    output.show(page_of(plan))
    sys.exit(DONE if plan.is_good else ERROR)


async def _plan(kube: "Kube", namespace: str, templates: "list[PodTemplate] | None") -> "Plan":
    from gpupool.admission.foreign.systems import of_api_groups, of_node
    from gpupool.cli.migration import groups_of_pods, plan_of
    from gpupool.scheduler.follow import read_cluster
    from kubeclient.resources import NODES, PODS

    state = await read_cluster(kube)
    nodes = (await kube.list(NODES)).items
    kinds = (await kube.page("/apis")).get("groups") or ()
    running = of_api_groups(str(kind.get("name")) for kind in kinds).union(*map(of_node, nodes))
    if templates is None:
        groups = groups_of_pods((await kube.list(PODS, namespace)).items)
    else:
        groups = [await _group(kube, template) for template in templates]
    return plan_of(state, running, groups)


async def _group(kube: "Kube", template: "PodTemplate") -> "Group":
    """The API server completes the pod in a dry run, so that all else of it is checked."""
    from gpupool.cli.migration import group_of_template
    from kubeclient.errors import Refused

    try:
        return group_of_template(template, await completed(kube, template))
    except Refused as error:
        return group_of_template(template, None, str(error))
