"""Templates that visitors keep: entries of one ConfigMap of their namespace, with their rights."""

import re
from collections.abc import Mapping

from gpupool.contract.names import CONFIG_MAP_TEMPLATES
from kubeclient.client import Kube
from kubeclient.errors import AlreadyExists, NotFound, Refused
from kubeclient.resources import CONFIG_MAPS

_NAME = re.compile(r"[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?")


def is_template_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


async def own_templates(kube: Kube, namespace: str) -> Mapping[str, str] | None:
    """By name; None: the visitor may not see them. Raises KubeError."""
    try:
        kept = await kube.get(CONFIG_MAPS, CONFIG_MAP_TEMPLATES, namespace)
    except NotFound:
        return {}
    except Refused as refused:
        if refused.code == 403:
            return None
        raise
    return {key: str(text) for key, text in sorted((kept.get("data") or {}).items())}


async def save_template(kube: Kube, namespace: str, name: str, text: str) -> None:
    """Raises KubeError."""
    metadata = {"name": CONFIG_MAP_TEMPLATES, "namespace": namespace}
    try:
        await _patch(kube, namespace, {name: text})
    except NotFound:
        try:
            await kube.create(CONFIG_MAPS, {"metadata": metadata, "data": {name: text}})
        except AlreadyExists:  # somebody else has made it between the two
            await _patch(kube, namespace, {name: text})


async def delete_template(kube: Kube, namespace: str, name: str) -> None:
    """Raises KubeError."""
    await _patch(kube, namespace, {name: None})


async def _patch(kube: Kube, namespace: str, data: Mapping[str, str | None]) -> None:
    await kube.patch(CONFIG_MAPS.path(namespace, CONFIG_MAP_TEMPLATES), {"data": data})
