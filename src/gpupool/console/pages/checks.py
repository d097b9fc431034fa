"""Checks of the YAML editor while somebody types: YAML's own mistakes, and what does not fit the
API server's schema, each with its line.

The text is sent, looked at and forgotten. What the API server itself thinks, a dry run says.
"""

import asyncio
from functools import partial
from typing import TypeAlias

import orjson
from aiohttp import web

from gpupool.console.complaints import Complaint, line_of
from gpupool.console.field_checks import MOST, wrong_fields
from gpupool.console.parts.channel import Channel, MayGoOn
from gpupool.console.rights import Right
from gpupool.console.said import said
from gpupool.console.visit import Visit
from gpupool.contract.yaml_document import Document, read_documents
from kubeclient.errors import KubeError
from kubeclient.objects import Obj

_LONGEST = 200_000  # bytes; more than that is checked when it is sent
_MOST_VALUES = 20_000
_MOST_KINDS = 24  # of one text: a description is some megabytes, and few are kept

Described: TypeAlias = tuple[Obj, Obj] | None
Known: TypeAlias = dict[tuple[str, str], Described]  # of this text so far


async def _serve(visit: Visit, request: web.Request, _: MayGoOn) -> web.StreamResponse:
    length = request.content_length
    body = await request.read() if length is not None and length <= _LONGEST else b""
    text = body.decode(errors="replace")  # whatever the browser says about its letters
    try:
        found = await complaints(visit, text)
    except KubeError:  # nobody wants an error for a key
        found = []
    wrong = [{"line": each.line, "words": _words(visit, each)} for each in found[:MOST]]
    return web.Response(body=orjson.dumps({"wrong": wrong}), content_type="application/json")


async def complaints(visit: Visit, text: str) -> list[Complaint]:
    """Raises KubeError."""
    read = partial(read_documents, text, most_values=_MOST_VALUES)
    documents = await asyncio.to_thread(read)
    if isinstance(documents, tuple):
        return [Complaint(said(visit.t, each.text), line_of(each.mark)) for each in documents]
    known: Known = {}
    return [each for found in documents for each in await _in_document(visit, known, found)]


async def _in_document(visit: Visit, known: Known, document: Document) -> list[Complaint]:
    t, data = visit.t, document.data
    if not isinstance(data, dict):
        words = said(t, "wanted an object with apiVersion, kind and metadata")
        return [Complaint(words, line_of(document.problem("").mark))]
    api_version, kind = data.get("apiVersion"), data.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return []  # not yet
    described = await _described(visit, known, (api_version, kind))
    if described is None:
        return []
    schemas, schema = described
    if not schema:
        words = said(t, f"the cluster has no kind {kind} in {api_version}")
        return [Complaint(words, line_of(document.problem("", "kind").mark))]
    return await asyncio.to_thread(wrong_fields, t, schemas, schema, document)


async def _described(visit: Visit, known: Known, wanted: tuple[str, str]) -> Described:
    if wanted not in known and len(known) < _MOST_KINDS:
        known[wanted] = await visit.session.sight.schemas.whole(*wanted)
    return known.get(wanted)


def _words(visit: Visit, complaint: Complaint) -> str:
    if not complaint.line:
        return complaint.words
    return visit.t("line {line}: {words}", line=complaint.line, words=complaint.words)


def _rights(_: Visit) -> tuple[Right, ...]:
    """None: it is the API server's own description, which it shows to whom it wants."""
    return ()


CHANNELS = (Channel("checks", _rights, _serve, method="POST"),)
