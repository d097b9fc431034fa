"""Objects of a namespace that a person has named: one that does not exist must not look empty."""

from typing import TYPE_CHECKING

import click

from kubeclient.errors import NotFound, Refused
from kubeclient.resources import NAMESPACES, Resource

if TYPE_CHECKING:
    from kubeclient.client import Kube
    from kubeclient.objects import Obj


async def get(kube: "Kube", resource: Resource, name: str, namespace: str) -> "Obj":
    """Raises NotFound if the namespace exists, and ClickException if it does not."""
    try:
        return await kube.get(resource, name, namespace)
    except NotFound:
        await check(kube, namespace)
        raise


async def check(kube: "Kube", namespace: str) -> None:
    """Raises ClickException if there is no such namespace. Who may not look gets no complaint."""
    try:
        await kube.get(NAMESPACES, namespace)
    except NotFound:
        raise click.ClickException(
            f'There is no namespace "{namespace}". See which there are: kubectl get namespaces'
        ) from None
    except Refused:
        return
