"""The heat view of the map: where the browser gets its data (`heat.py`), and who is on a node."""

import orjson
from aiohttp import web

from gpupool.console.card_links import linked_cells
from gpupool.console.colours import By, by_of, palette
from gpupool.console.gpus import Overview
from gpupool.console.heat import Heat
from gpupool.console.pages.map_filters import filters_of
from gpupool.console.parts.channel import Channel, MayGoOn
from gpupool.console.read_cards import MOST_NODES_READ
from gpupool.console.rights import Right
from gpupool.console.visit import Visit
from gpupool.core.readings import CardReading
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS


async def heat_of(visit: Visit, found: Overview) -> tuple[Heat, str]:
    """And the name of the state that it shows: another one has other colours."""
    colours = palette(by_of(visit.query.get("colour", "")), found.nodes)
    read = await _used(visit, found) if colours.by is By.USE else {}
    heat = Heat(colours, read, filters_of(visit.query).mean)
    return heat, f"{found.epoch}-{heat.digest}"


async def _used(visit: Visit, found: Overview) -> dict[str, CardReading]:
    """Of many nodes, agents are not asked: each is a connection. The history has asked them."""
    if len(found.nodes) > MOST_NODES_READ:
        return await visit.recent_use()
    return await visit.readings(frozenset(node.name for node in found.nodes))


async def heat_version(visit: Visit, found: Overview) -> str:
    """Changes when a square may look different."""
    _, name = await heat_of(visit, found)
    return f"{name}.{found.version}"


async def _serve(visit: Visit, _: web.Request, __: MayGoOn) -> web.StreamResponse:
    found = await visit.gpus()
    node = visit.query.get("node", "")
    answer = web.Response(
        body=orjson.dumps(await (_who(visit, found, node) if node else _cards(visit, found))),
        content_type="application/json",
    )
    answer.enable_compression()
    return answer


async def _cards(visit: Visit, found: Overview) -> Obj:
    heat, name = await heat_of(visit, found)
    known, _, number = visit.query.get("since", "").rpartition(".")
    since = int(number) if known == name and number.isdecimal() and len(number) < 19 else -1
    is_whole, nodes = heat.nodes(found, since)
    return {"version": f"{name}.{found.version}", "whole": is_whole, "nodes": nodes}


async def _who(visit: Visit, found: Overview, name: str) -> Obj:
    """What hover says of each card of one node."""
    node = next((node for node in found.nodes if node.name == name), None)
    cells = linked_cells(visit, node, palette(By.NAMESPACE, ()), {}) if node else ()
    return {
        "cards": [
            [f"{cell.name} · {cell.words}", *([cell.state.text] if cell.state else [])]
            + [segment.title for segment in cell.segments]
            for cell in cells
        ]
    }


def _rights(_: Visit) -> tuple[Right, ...]:
    return tuple(Right(verb, what) for what in (NODES, PODS) for verb in ("list", "watch"))


CHANNELS = (Channel("map/cards", _rights, _serve),)
