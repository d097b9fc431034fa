"""`gpupool open`: prints where a Service answers, and opens it in a browser."""

import os
import sys
from typing import TYPE_CHECKING

import click

from gpupool.cli.browser import from_elsewhere, has_screen
from gpupool.cli.known_names import services
from gpupool.cli.options import (
    access_options,
    chosen_namespace,
    name_and_namespace,
    namespace_option,
)
from gpupool.cli.output.text import clean
from gpupool.cli.programs import ask_cluster

if TYPE_CHECKING:
    from kubeclient.client import Kube
    from kubeclient.objects import Obj

_PATIENCE_S = 30.0  # a Service that was just created gets its address in a moment
# Then it looks whether the load balancer was refused. A local cluster asks every five seconds: what
# it said before somebody raised the quota is not true any more.
_SOON_S = 8.0
_LOOK_EVERY_S = 0.1
_FAILED = "SyncLoadBalancerFailed"  # the reason that Kubernetes' own service controller gives, too
_OUTSIDE = ("LoadBalancer", "NodePort")


@click.command("open")
@click.argument("service", shell_complete=services)
@namespace_option("service")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@access_options
def command(service: str, namespace: str, no_browser: bool, **where: str) -> None:
    """Print where a service answers, and open it in a browser.

    Works for services of type LoadBalancer and, in a local cluster, NodePort. In a terminal
    with a screen it also opens the browser; without one, as over SSH, it says how to get there.

    \b
    Examples:
      gpupool open tf-notebook
      curl "$(gpupool open tf-notebook --no-browser)"
    """
    service, namespace = name_and_namespace("services service svc", service, namespace)
    namespace = chosen_namespace(namespace, where)
    link = ask_cluster(
        lambda kube: link_when_ready(kube, service, namespace),
        doing=f"Waiting for the address of service {service}",
        **where,
    )
    click.echo(link)
    if no_browser or not sys.stdout.isatty():
        return
    if has_screen(sys.platform, os.environ):
        click.launch(link)
    elif words := from_elsewhere(link, os.environ):
        click.echo(f"\n{words}", err=True)


async def link_when_ready(kube: "Kube", name: str, namespace: str) -> str:
    """Raises ClickException where there will be none."""
    import asyncio

    from gpupool.contract.services import link_of

    clock = asyncio.get_running_loop().time
    begin = clock()
    asked = False
    while True:
        service = await _service(kube, name, namespace)
        link = link_of(service)
        if link:
            return link
        kind = service["spec"].get("type", "ClusterIP")
        waited = clock() - begin
        if kind not in _OUTSIDE or waited > _PATIENCE_S:
            raise click.ClickException(_no_address(service, kind))
        if waited >= _SOON_S and not asked:
            asked = True
            if why := await _refusal(kube, service):
                raise click.ClickException(_refused(service, why))
        await asyncio.sleep(_LOOK_EVERY_S)


async def _service(kube: "Kube", name: str, namespace: str) -> "Obj":
    """Raises ClickException."""
    from gpupool.cli import namespaced
    from kubeclient.errors import NotFound
    from kubeclient.resources import SERVICES

    try:
        return await kube.get(SERVICES, name, namespace)
    except NotFound:
        await namespaced.check(kube, namespace)
        there = (await kube.list(SERVICES, namespace)).items
        workload = await _workload(kube, name, namespace)
        raise click.ClickException(_unknown(name, namespace, there, workload)) from None


async def _refusal(kube: "Kube", service: "Obj") -> str:
    """Why the load balancer was not made, in the words of its event; or empty."""
    from kubeclient.errors import KubeError
    from kubeclient.resources import EVENTS

    selector = f"involvedObject.uid={service['metadata']['uid']},reason={_FAILED}"
    try:
        found = await kube.list(
            EVENTS, service["metadata"]["namespace"], query={"fieldSelector": selector}
        )
    except KubeError:  # who may not see events is told how else to reach the service
        return ""
    return latest_message(found.items)


def latest_message(events: "list[Obj]") -> str:
    """Each new reason is an event of its own, and a list has them by name. Empty: there is none."""
    latest = max(events, key=_last_seen, default={})
    return clean(str(latest.get("message") or ""))


def _last_seen(event: "Obj") -> str:
    made = event["metadata"].get("creationTimestamp")
    return str(event.get("lastTimestamp") or event.get("eventTime") or made or "")


async def _workload(kube: "Kube", name: str, namespace: str) -> str:
    """The Deployment, StatefulSet or Pod of this name that has a port, and the port; or empty."""
    from kubeclient.errors import NotFound
    from kubeclient.resources import DEPLOYMENTS, PODS, STATEFUL_SETS

    for resource in (DEPLOYMENTS, STATEFUL_SETS, PODS):
        try:
            found = await kube.get(resource, name, namespace)
        except NotFound:
            continue
        spec = found["spec"].get("template", found)["spec"]
        ports = [port for each in spec["containers"] for port in each.get("ports") or ()]
        if ports:
            return f"{resource.kind.lower()}/{name} {ports[0]['containerPort']}"
    return ""


def _unknown(name: str, namespace: str, there: list["Obj"], workload: str) -> str:
    said = f'There is no service "{name}" in namespace {namespace}.'
    if workload:
        port = workload.rpartition(" ")[2]
        forward = f"kubectl port-forward -n {namespace} {workload}"
        return f"{said} Reach {workload.split()[0]} with: {forward} (http://localhost:{port})"
    names = ", ".join(each["metadata"]["name"] for each in there) or "none"
    return f"{said} Services there: {names}."


def _no_address(service: "Obj", kind: str) -> str:
    metadata = service["metadata"]
    return (
        f"Service {metadata['namespace']}/{metadata['name']} is of type {kind} and has no address "
        f"outside of the cluster. Reach it with: {_forward(service)}"
    )


def _refused(service: "Obj", why: str) -> str:
    metadata = service["metadata"]
    return (
        f"Service {metadata['namespace']}/{metadata['name']} waits for an address: {why}\n"
        f"Until then, reach it with: {_forward(service)}"
    )


def _forward(service: "Obj") -> str:
    metadata = service["metadata"]
    ports = service["spec"].get("ports") or [{"port": "PORT"}]
    target = f"-n {metadata['namespace']} service/{metadata['name']}"
    return f"kubectl port-forward {target} 8080:{ports[0]['port']}"
