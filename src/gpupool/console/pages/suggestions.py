"""Suggestions for the YAML editor: which fields, or values, can stand at a place of a manifest.

The browser finds the place (`static/yaml_place.js`) and sends its path, never the text.
"""

from dataclasses import asdict

import orjson
from aiohttp import web

from gpupool.console.parts.channel import Channel, MayGoOn
from gpupool.console.rights import Right
from gpupool.console.visit import Visit
from kubeclient.errors import KubeError

_LONGEST = 2_000
_MOST = 400


async def _serve(visit: Visit, _: web.Request, __: MayGoOn) -> web.StreamResponse:
    query = visit.query
    where = (query.get("apiVersion", ""), query.get("kind", ""))
    path = tuple(step for step in query.get("path", "")[:_LONGEST].split("\n") if step)
    schemas = visit.session.sight.schemas
    ask = schemas.values if query.get("what") == "values" else schemas.fields
    try:
        found = await ask(*where, path)
    except KubeError:  # nobody wants an error for a key: then there are no suggestions
        found = []
    body = orjson.dumps({"named": [asdict(each) for each in found[:_MOST]]})
    headers = {"Cache-Control": "private, max-age=60"}
    return web.Response(body=body, content_type="application/json", headers=headers)


def _rights(_: Visit) -> tuple[Right, ...]:
    """None: it is the API server's own description, which it shows to whom it wants."""
    return ()


CHANNELS = (Channel("suggestions", _rights, _serve),)
