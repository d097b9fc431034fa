"""Logs of a pod: one container, the present run or the one before, followed, filtered, downloaded.

The page has the choices; the text comes through a channel, chunk by chunk, as plain text that no
browser takes for a page. Neither the console nor the browser keeps more than a bounded part of it.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator

from aiohttp import web

from gpupool.console import guard
from gpupool.console.pages.pod_places import found_pod, log_rights, pod_crumbs
from gpupool.console.parts.channel import LOOK_EVERY_S, Channel, MayGoOn
from gpupool.console.parts.page import Page, Shown
from gpupool.console.rights import Right
from gpupool.console.rows.containers import chosen_container, container_names
from gpupool.console.visit import Visit
from kubeclient.errors import KubeError, Refused

_FIRST_LINES = 2_000  # of the past, when one begins to follow


async def _show(visit: Visit) -> Shown:
    t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
    pod = await found_pod(visit)
    names = container_names(pod)
    chosen = chosen_container(names, visit.query.get("container", ""))
    previous = visit.query.get("previous", "") == "1"
    asked = {"container": chosen, "previous": "1" if previous else ""}
    text = ("pods", namespace, name, "logs", "text")
    flag = " --previous" if previous else ""
    return Shown(
        title=t("Logs of {name}", name=name),
        sentence=t("What container {container} writes.", container=chosen),
        crumbs=pod_crumbs(visit, with_pod=True),
        command=f"kubectl logs {name} --namespace {namespace} --container {chosen} --follow{flag}",
        values={
            "names": names,
            "chosen": chosen,
            "previous": previous,
            "lacks": await visit.lacks(*_rights(visit)),
            "source": visit.link(*text, **asked, follow="" if previous else "1", tail="1"),
            "plain": visit.link(*text, **asked),
            "file": visit.link(*text, **asked, download="1"),
        },
    )


def _rights(visit: Visit) -> tuple[Right, ...]:
    return log_rights(visit.names["namespace"])


async def _serve(visit: Visit, request: web.Request, may_go_on: MayGoOn) -> web.StreamResponse:
    namespace, name = visit.names["namespace"], visit.names["name"]
    answer = web.StreamResponse(headers=guard.HEADERS | _headers(visit))
    chunks = _with_pauses(visit.kube.logs(namespace, name, _asked(visit)))
    async with contextlib.aclosing(chunks):
        try:
            first = await anext(chunks, None)
        except Refused as refused:
            if refused.code == 401:
                raise
            # In the API server's own words: "container c is waiting to start: ContainerCreating".
            return web.Response(text=str(refused), status=409, content_type="text/plain")
        await answer.prepare(request)
        # It ends early when the API server goes, or the browser.
        with contextlib.suppress(KubeError, ConnectionError):
            if first:
                await answer.write(first)
            async for chunk in chunks:
                if request.transport is None or not await may_go_on():
                    break
                # Waits for the browser: a slow reader slows the reading, and fills no memory.
                await answer.write(chunk or b"")
    return answer


async def _with_pauses(
    chunks: AsyncGenerator[bytes, None],
) -> AsyncGenerator[bytes | None, None]:
    """The chunks; and None whenever there was none for a while. Closes them at the end."""
    following: asyncio.Future[bytes] | None = None
    try:
        while True:
            following = following or asyncio.ensure_future(anext(chunks, b""))
            await asyncio.wait((following,), timeout=LOOK_EVERY_S)
            if not following.done():
                yield None
                continue
            chunk, following = following.result(), None
            if not chunk:
                return
            yield chunk
    finally:
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        await chunks.aclose()


def _asked(visit: Visit) -> dict[str, str]:
    """The API's own query. A wrong container is for the API server to refuse."""
    query = {"container": visit.query.get("container", "")}
    for ours, theirs in (("follow", "follow"), ("previous", "previous")):
        if visit.query.get(ours) == "1":
            query[theirs] = "true"
    if visit.query.get("tail") == "1":
        query["tailLines"] = str(_FIRST_LINES)
    return query


def _headers(visit: Visit) -> dict[str, str]:
    headers = {"Content-Type": "text/plain; charset=utf-8"}
    if visit.query.get("download") == "1":
        # Names come from the address: only what the API allows in names gets into a header.
        named = (visit.names["name"], visit.query.get("container", ""))
        safe = "-".join(re.sub("[^A-Za-z0-9.-]", "", each) for each in named)
        headers["Content-Disposition"] = f'attachment; filename="{safe}.log"'
    return headers


PAGE = Page(
    path="pods/{namespace}/{name}/logs",
    menu="pods",
    show=_show,
    template="pod_logs.html",
    is_live=False,  # a pod that goes must not take away the log that one reads
)
CHANNELS = (Channel("pods/{namespace}/{name}/logs/text", _rights, _serve),)
