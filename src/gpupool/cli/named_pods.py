"""A pod that a person has named: who names a workload instead, or mistypes, is shown pods."""

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from gpupool.cli import namespaced
from kubeclient.errors import NotFound, Refused
from kubeclient.resources import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)

if TYPE_CHECKING:
    from kubeclient.client import Kube
    from kubeclient.objects import Obj

_WORKLOADS = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, JOBS, CRON_JOBS, REPLICA_SETS)
# What kubectl takes and prints before the slash of KIND/NAME.
_WORDS = {
    word: resource
    for resource in _WORKLOADS
    for plain in (resource.plural, resource.kind.lower())
    for word in (plain, f"{plain}.{resource.group}")
} | {
    "deploy": DEPLOYMENTS,
    "sts": STATEFUL_SETS,
    "ds": DAEMON_SETS,
    "cj": CRON_JOBS,
    "rs": REPLICA_SETS,
}
_MOST = 5  # names that are shown
_ALIKE = 0.8


async def get(kube: "Kube", name: str, namespace: str) -> "Obj":
    """Raises NotFound, and ClickException if there is something better to say."""
    try:
        return await kube.get(PODS, name, namespace)
    except NotFound:
        await advise(kube, name, namespace)
        raise


async def advise(kube: "Kube", name: str, namespace: str) -> None:
    """Raises ClickException if it is known what was meant, or if there is no such namespace."""
    kind = _WORDS.get(namespace.lower())
    try:
        await namespaced.check(kube, namespace)
    except click.ClickException:
        if kind is None:
            raise
        pods = _begin_with(name, await _pods(kube))
        raise click.ClickException(
            f"{namespace}/{name} names a {kind.kind}, wanted a pod. {_choice(pods)}"
        ) from None
    missing = f'pods "{name}" not found.'
    there = await _pods(kube, namespace)
    if pods := _begin_with(name, there):
        raise click.ClickException(f"{missing} {_choice(pods)}")
    if kind := await _workload(kube, name, namespace):
        raise click.ClickException(
            f"{missing} There is a {kind.kind} of that name, which has no pods. What it says: "
            f"kubectl describe {kind.kind.lower()} {name} -n {namespace}"
        )
    if close := difflib.get_close_matches(name, [each for _, each in there], 1, _ALIKE):
        raise click.ClickException(f"{missing} Did you mean {namespace}/{close[0]}?")


async def _pods(kube: "Kube", namespace: str = "") -> list[tuple[str, str]]:
    """Namespace and name; none, if one may not list them."""
    try:
        found = await kube.list(PODS, namespace, metadata_only=True)
    except Refused:
        return []
    return [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in found.items]


def _begin_with(name: str, pods: Iterable[tuple[str, str]]) -> list[str]:
    """As the pods of a workload do."""
    return sorted(f"{space}/{pod}" for space, pod in pods if pod.startswith(f"{name}-"))


def _choice(pods: list[str]) -> str:
    if not pods:
        return "See which there are: kubectl get pods -A"
    more = f" and {len(pods) - _MOST} more" if len(pods) > _MOST else ""
    return f"Pods whose names begin so: {', '.join(pods[:_MOST])}{more}."


async def _workload(kube: "Kube", name: str, namespace: str) -> Resource | None:
    for resource in _WORKLOADS:
        try:
            await kube.get(resource, name, namespace)
        except Refused:
            continue
        return resource
    return None
