"""Terminal of a pod: a shell in one of its containers, in the browser.

The browser's WebSocket ends here, and another one leads to the API server's exec, with the
visitor's own token. Bytes are passed on as they come; each side waits for the other.
"""

import asyncio
import contextlib
from collections.abc import Coroutine

import orjson
from aiohttp import WSMsgType, web

from gpupool.console.pages.pod_places import exec_rights, found_pod, pod_crumbs
from gpupool.console.parts.channel import Channel, MayGoOn, until_over
from gpupool.console.parts.page import Page, Shown
from gpupool.console.rights import Right
from gpupool.console.rows.containers import chosen_container, container_names
from gpupool.console.visit import Visit
from kubeclient.client import WebSocket
from kubeclient.errors import KubeError
from kubeclient.resources import PODS

PROTOCOL = "v4.channel.k8s.io"
_STDIN, _STDOUT, _STDERR, _RESULT, _SIZE = range(5)
SHELLS = ("sh", "bash")
_MOST_TYPED_BYTES = 256 * 1024  # in one message: a large paste
_HEARTBEAT_S = 20.0
_LARGEST = 1_000  # columns and rows


async def _show(visit: Visit) -> Shown:
    t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
    names = container_names(await found_pod(visit))
    chosen = chosen_container(names, visit.query.get("container", ""))
    shell = _shell(visit)
    path = ("pods", namespace, name, "terminal", "socket")
    where = f"--namespace {namespace} --container {chosen}"
    return Shown(
        title=t("Terminal of {name}", name=name),
        sentence=t("A shell in container {container}.", container=chosen),
        crumbs=pod_crumbs(visit, with_pod=True),
        command=f"kubectl exec -it {name} {where} -- {shell}",
        values={
            "names": names,
            "chosen": chosen,
            "shells": SHELLS,
            "shell": shell,
            "lacks": await visit.lacks(*_rights(visit)),
            "source": visit.link(*path, container=chosen, shell=shell),
        },
    )


def _rights(visit: Visit) -> tuple[Right, ...]:
    return exec_rights(visit.names["namespace"])


def _shell(visit: Visit) -> str:
    wanted = visit.query.get("shell", "")
    return wanted if wanted in SHELLS else SHELLS[0]


async def _serve(visit: Visit, request: web.Request, may_go_on: MayGoOn) -> web.StreamResponse:
    browser = web.WebSocketResponse(max_msg_size=_MOST_TYPED_BYTES, heartbeat=_HEARTBEAT_S)
    if not browser.can_prepare(request).ok:
        return web.Response(text="This address is for WebSockets.", status=426)
    await browser.prepare(request)
    query = {
        "container": visit.query.get("container", ""),
        "command": _shell(visit),
        "stdin": "true",
        "stdout": "true",
        "tty": "true",
    }
    path = PODS.path(visit.names["namespace"], visit.names["name"], "exec")
    try:
        async with visit.kube.websocket(path, query=query, protocol=PROTOCOL) as container:
            await _first_to_end(
                _to_container(browser, container),
                _to_browser(browser, container),
                until_over(may_go_on),
            )
    except (KubeError, ConnectionError) as error:
        await _say_end(browser, str(error))
    await browser.close()
    return browser


async def _first_to_end(*ways: Coroutine[None, None, None]) -> None:
    """When one of them ends, all do."""
    tasks = [asyncio.ensure_future(each) for each in ways]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _to_container(browser: web.WebSocketResponse, container: WebSocket) -> None:
    async for message in browser:
        if message.type is WSMsgType.BINARY:
            await container.send(bytes([_STDIN]) + message.data)
        elif message.type is WSMsgType.TEXT and (size := size_of(message.data)):
            await container.send(bytes([_SIZE]) + size)


async def _to_browser(browser: web.WebSocketResponse, container: WebSocket) -> None:
    while (message := await container.receive()) is not None:
        channel, data = (message[0], message[1:]) if message else (_STDOUT, b"")
        if channel in (_STDOUT, _STDERR) and data:
            await browser.send_bytes(data)
        elif channel == _RESULT:
            await _say_end(browser, end_words(data))
            return


async def _say_end(browser: web.WebSocketResponse, words: str) -> None:
    with contextlib.suppress(ConnectionError):
        await browser.send_str(orjson.dumps({"end": words}).decode())


def size_of(text: str) -> bytes:
    """What the API server wants to know of a terminal that has changed its size. Empty: it is not
    one."""
    try:
        asked = orjson.loads(text)
        columns, rows = asked["columns"], asked["rows"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return b""
    if not all(type(each) is int and 0 < each <= _LARGEST for each in (columns, rows)):
        return b""
    return orjson.dumps({"Width": columns, "Height": rows})


def end_words(status: bytes) -> str:
    """What the API server says at the end; empty: the shell ended as it should."""
    try:
        found = orjson.loads(status)
    except orjson.JSONDecodeError:
        return status.decode("utf-8", "replace")
    if not isinstance(found, dict) or found.get("status") == "Success":
        return ""
    return _exit_code(found) or str(found.get("message") or found.get("reason") or "")


def _exit_code(status: dict[str, object]) -> str:
    """Kubernetes' message says it twice. Empty: the shell did not end by itself."""
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    for cause in causes if isinstance(causes, list) else ():
        if isinstance(cause, dict) and cause.get("reason") == "ExitCode":
            return f"exit code {cause.get('message')}"
    return ""


PAGE = Page(
    path="pods/{namespace}/{name}/terminal",
    menu="pods",
    show=_show,
    template="pod_terminal.html",
    is_live=False,  # a pod that goes must not take away what is on the screen
)
CHANNELS = (Channel("pods/{namespace}/{name}/terminal/socket", _rights, _serve),)
