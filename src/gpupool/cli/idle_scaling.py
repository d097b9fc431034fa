"""Scales an idle workload to zero, or back, for `gpupool idle`."""

from typing import TYPE_CHECKING

import click

from gpupool.cli import namespaced
from gpupool.history.parking import RESOURCES, Change, No, restored, to_zero

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from gpupool.history.usage import IdlePod
    from kubeclient.client import Kube
    from kubeclient.objects import Obj
    from kubeclient.resources import Resource


async def scale_to_zero(
    kube: "Kube", name: str, namespace: str, idle: "Collection[IdlePod]", running: "Collection[str]"
) -> str:
    """`running`: names of the workload's containers that hold cards. Only if all of them are idle.
    Raises ClickException."""
    resource, short = _parsed(name)
    known = {f"{each.namespace}/{each.pod}/{each.container}" for each in idle}
    busy = sorted(set(running) - known)
    if not running:
        await namespaced.get(kube, resource, short, namespace)  # what is not there is called that
    if not running or busy:
        words = f"{busy[0]} is not idle" if busy else "none of its pods holds a card"
        raise click.ClickException(f"{namespace}/{name} is left as it is: {words}.")
    replicas = await _change(kube, resource, (namespace, name, short), to_zero)
    back = f"gpupool idle --restore {name} -n {namespace}"
    return f"{namespace}/{name} scaled from {replicas} to 0. Back: {back}"


async def restore(kube: "Kube", name: str, namespace: str) -> str:
    resource, short = _parsed(name)
    replicas = await _change(kube, resource, (namespace, name, short), restored)
    return f"{namespace}/{name} has {replicas} replicas again."


async def _change(
    kube: "Kube",
    resource: "Resource",
    names: tuple[str, str, str],
    change: "Callable[[Obj], Change | No]",
) -> int:
    namespace, name, short = names
    found = change(await kube.get(resource, short, namespace))
    if isinstance(found, No):
        raise click.ClickException(f"{namespace}/{name} is left as it is: {found.why}.")
    await kube.patch(resource.path(namespace, short), found.patch)
    return found.replicas


def _parsed(name: str) -> "tuple[Resource, str]":
    kind, _, short = name.partition("/")
    resource = {known.lower(): found for known, found in RESOURCES.items()}.get(kind.lower())
    if resource is None or not short:
        wanted = " or ".join(f"{known}/NAME" for known in RESOURCES)
        raise click.ClickException(
            f'Wanted {wanted}, found "{name}": nothing else can be restored.'
        )
    return resource, short
