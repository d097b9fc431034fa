"""Manifests as visitors type them: reads them, and applies them as `kubectl apply --server-side`.

Every complaint has the line that it is about: YAML's own, and the API server's, which names fields.
"""

import asyncio
import re
from dataclasses import dataclass

from gpupool.console.complaints import BadManifest, Complaint, complaints_of, line_of
from gpupool.contract.manifests import objects_of
from gpupool.contract.yaml_document import Document, read_documents
from kubeclient.client import APPLY_PATCH, Kube
from kubeclient.errors import NotFound, Refused
from kubeclient.objects import Obj
from kubeclient.resources import Resource

MANAGER = "gpupool-console"
# Others of the same manifest may depend on these: they cannot be tried before these are there.
_FIRST = ("Namespace", "CustomResourceDefinition")


@dataclass(frozen=True, slots=True)
class Planned:
    """An object of the manifest, and where the API has its kind."""

    obj: Obj
    resource: Resource
    document: Document

    @property
    def shown(self) -> str:
        return f"{self.resource.kind} {self.obj['metadata'].get('name', '')}"


async def planned(kube: Kube, text: str, namespace: str) -> list[Planned]:
    """`namespace`: of objects that name none. Raises BadManifest, KubeError."""
    # In a thread: 100,000 values take seconds, and other visitors do not wait for them.
    documents = await asyncio.to_thread(read_documents, text)
    if isinstance(documents, tuple):
        raise BadManifest(*(Complaint(each.text, line_of(each.mark)) for each in documents))
    found = [(each, document) for document in documents for each in objects_of(document.data)]
    if not found:
        raise BadManifest(Complaint("wanted an object with apiVersion, kind and metadata", 1))
    kinds = _Kinds(kube)
    return [await _plan(kinds, obj, document, namespace) for obj, document in found]


async def _plan(kinds: "_Kinds", obj: Obj, document: Document, namespace: str) -> Planned:
    for key in ("apiVersion", "kind"):
        if not isinstance(obj.get(key), str):
            raise BadManifest(
                Complaint(f"{key}: wanted a text", line_of(document.problem("").mark))
            )
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        mark = document.problem("", "metadata", "name").mark
        raise BadManifest(Complaint("metadata.name: wanted a name", line_of(mark)))
    resource = await kinds.of(obj["apiVersion"], obj["kind"])
    if resource is None:
        words = f"the cluster has no kind {obj['kind']} in {obj['apiVersion']}"
        raise BadManifest(Complaint(words, line_of(document.problem("", "kind").mark)))
    if resource.namespaced:
        obj = {**obj, "metadata": {"namespace": namespace or "default", **metadata}}
    return Planned(obj, resource, document)


async def apply(kube: Kube, plans: list[Planned]) -> None:
    """All of them are tried first, so that a mistake leaves nothing half made. Raises BadManifest,
    KubeError."""
    if not any(plan.resource.kind in _FIRST for plan in plans):
        await try_out(kube, plans)
    for plan in plans:
        await _apply(kube, plan, {})


async def try_out(kube: Kube, plans: list[Planned]) -> None:
    """A dry run. Raises BadManifest, KubeError."""
    for plan in plans:
        await _apply(kube, plan, {"dryRun": "All"})


async def _apply(kube: Kube, plan: Planned, query: dict[str, str]) -> None:
    metadata = plan.obj["metadata"]
    path = plan.resource.path(metadata.get("namespace", ""), metadata["name"])
    asked = {"fieldManager": MANAGER, **query}
    try:
        await kube.patch(path, plan.obj, content_type=APPLY_PATCH, query=asked)
    except Refused as refused:
        if refused.code == 401:
            raise
        raise BadManifest(*complaints_of(plan.shown, plan.document, refused)) from refused


class _Kinds:
    """What the cluster calls the kinds of a manifest; asks for each group version once."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._known: dict[str, dict[str, Resource]] = {}

    async def of(self, api_version: str, kind: str) -> Resource | None:
        if api_version not in self._known:
            self._known[api_version] = await self._read(api_version)
        return self._known[api_version].get(kind)

    async def _read(self, api_version: str) -> dict[str, Resource]:
        if not re.fullmatch(r"[a-z0-9.-]+(/[a-z0-9]+)?", api_version):
            return {}
        group, _, version = api_version.rpartition("/")
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            listed = (await self._kube.page(path)).get("resources") or ()
        except NotFound:
            return {}
        return {
            each["kind"]: Resource(group, version, each["name"], each["kind"], each["namespaced"])
            for each in listed
            if "/" not in each["name"]
        }
