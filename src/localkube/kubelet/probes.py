"""Probes and hooks of a container: what they do (run a command, request a page, open a connection),
and when probes run: the start-up probe first, then liveness and readiness side by side."""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from kubeclient.bounded_numbers import bounded_number
from kubeclient.objects import Obj
from localkube.kubelet.container_run import ContainerRun
from localkube.kubelet.exec_process import TIMED_OUT, ExecProcesses
from localkube.kubelet.lifecycle import NEVER

log = logging.getLogger(__name__)

_LOOPBACK = "127.0.0.1"
_HEAD_LIMIT = 64 * 1024
_CODE_DIGITS = 3
_PORT_DIGITS = 5
# What may stand in a path and its query; all else is escaped, as URLs want it.
_PATH_CHARACTERS = "/?%:@!$&'()*+,;=~"

# From a port of the pod to the port on this machine.
PortOf = Callable[[ContainerRun, int], int]


class ActionFailed(Exception):
    """The message is the kubelet's."""


class ActionErrored(ActionFailed):
    """It could not be tried, so nobody knows whether it would have failed."""


async def act(
    action: Obj, run: ContainerRun, timeout_s: float, execs: ExecProcesses, port_of: PortOf
) -> None:
    """Raises ActionFailed, and nothing else: what an action says and what it meets comes from
    users."""
    try:
        await _try(action, run, timeout_s, execs, port_of)
    except ActionFailed:
        raise
    except TimeoutError as error:
        raise ActionFailed("context deadline exceeded") from error
    except OSError as error:
        raise ActionErrored(error.strerror or str(error)) from error
    except Exception as error:
        log.exception("action not understood", extra={"pod": run.pod.uid})
        raise ActionErrored(f"{type(error).__name__}: {error}") from error


async def _try(
    action: Obj, run: ContainerRun, timeout_s: float, execs: ExecProcesses, port_of: PortOf
) -> None:
    kind = next((key for key in _ACTIONS if action.get(key) is not None), None)
    if kind is None:
        raise ActionErrored("missing handler")
    if kind == "exec":
        await _exec(action["exec"], run, timeout_s, execs)
        return
    async with asyncio.timeout(timeout_s):
        await _ACTIONS[kind](action[kind], run, port_of)


async def _exec(action: Obj, run: ContainerRun, timeout_s: float, execs: ExecProcesses) -> None:
    code, said = await execs.output(run.inside, action["command"], timeout_s)
    if code == TIMED_OUT:
        raise ActionFailed(f"command timed out: {' '.join(action['command'])!r} timed out")
    if code != 0:
        raise ActionFailed(said)


async def _sleep(action: Obj, run: ContainerRun, port_of: PortOf) -> None:
    await asyncio.sleep(action["seconds"])


async def _tcp(action: Obj, run: ContainerRun, port_of: PortOf) -> None:
    number = _port_number(action["port"], run)
    host = action.get("host") or _LOOPBACK
    shown = f"{action.get('host') or run.pod.ip}:{number}"
    _, writer = await _connected(host, port_of(run, number), shown, None)
    writer.close()


async def _http(action: Obj, run: ContainerRun, port_of: PortOf) -> None:
    number = _port_number(action["port"], run)
    scheme = action.get("scheme", "HTTP").lower()
    path = quote(action.get("path") or "/", safe=_PATH_CHARACTERS)
    path = path if path.startswith("/") else f"/{path}"
    shown = f"{action.get('host') or run.pod.ip}:{number}"
    host = action.get("host") or _LOOPBACK
    port = number if action.get("host") else port_of(run, number)
    try:
        reader, writer = await _connected(host, port, shown, _tls() if scheme == "https" else None)
    except ActionFailed as error:
        raise ActionFailed(f'Get "{scheme}://{shown}{path}": {error}') from error
    try:
        writer.write(_request(action, path, shown))
        await writer.drain()
        line = await reader.readline()
    except (OSError, ValueError) as error:
        raise ActionFailed(f'Get "{scheme}://{shown}{path}": {error}') from error
    finally:
        writer.close()
    code = _status_code(line)
    if code is None:
        raise ActionFailed(f'Get "{scheme}://{shown}{path}": EOF')
    if not 200 <= code < 400:
        raise ActionFailed(f"HTTP probe failed with statuscode: {code}")


async def _connected(
    host: str, port: int, shown: str, tls: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        return await asyncio.open_connection(host, port, ssl=tls, limit=_HEAD_LIMIT)
    except ConnectionRefusedError as error:
        raise ActionFailed(f"dial tcp {shown}: connect: connection refused") from error
    except OSError as error:
        raise ActionFailed(f"dial tcp {shown}: {error.strerror or error}") from error
    except UnicodeError as error:  # such a name cannot even be asked for
        raise ActionFailed(f"dial tcp: lookup {host}: no such host") from error


def _request(action: Obj, path: str, shown: str) -> bytes:
    headers = {h["name"]: h["value"] for h in action.get("httpHeaders") or ()}
    if any(sign in text for text in headers.values() for sign in "\r\n\0"):
        raise ActionErrored("net/http: invalid header field value")
    lines = [f"GET {path} HTTP/1.1"]
    lines += [f"{name}: {text}" for name, text in ({"Host": shown} | headers).items()]
    known = {name.lower() for name in headers}
    if "user-agent" not in known:
        lines.append("User-Agent: kube-probe/1.35")
    if "accept" not in known:
        lines.append("Accept: */*")
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode()


def _status_code(line: bytes) -> int | None:
    parts = line.split()
    is_code = len(parts) >= 2 and parts[1].isdigit() and len(parts[1]) == _CODE_DIGITS
    return int(parts[1]) if is_code else None


def _tls() -> ssl.SSLContext:
    """Probes do not verify certificates, as in every kubelet."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _port_number(port: int | str, run: ContainerRun) -> int:
    if isinstance(port, int):
        return port
    for declared in run.spec.get("ports") or ():
        if declared.get("name") == port:
            return int(declared["containerPort"])
    if (number := bounded_number(port, _PORT_DIGITS)) is not None:
        return number
    raise ActionErrored(f'couldn\'t find port: "{port}"')


_Action = Callable[[Obj, ContainerRun, PortOf], Awaitable[None]]


async def _no_exec(action: Obj, run: ContainerRun, port_of: PortOf) -> None:
    raise AssertionError("`act` handles exec itself")


_ACTIONS: dict[str, _Action] = {
    "exec": _no_exec,
    "httpGet": _http,
    "tcpSocket": _tcp,
    "sleep": _sleep,
}


# Raises ActionFailed.
Check = Callable[[Obj, ContainerRun], Awaitable[None]]
Told = Callable[[ContainerRun, str, str], None]  # records an event: reason and message
Moved = Callable[[ContainerRun], None]

_NAMES = {
    "startupProbe": "Startup",
    "livenessProbe": "Liveness",
    "readinessProbe": "Readiness",
}


def is_probed(spec: Obj) -> bool:
    return any(spec.get(key) for key in _NAMES)


async def probe(run: ContainerRun, check: Check, told: Told, moved: Moved) -> None:
    """Runs the probes, and sets `started`, `ready` and `unhealthy` of the container."""
    spec, container = run.spec, run.container
    if spec.get("startupProbe"):
        async for passed in Verdicts("startupProbe", run, check, told):
            if not passed:
                _fail(run, "startupProbe", told, moved)
                return
            break
    container.started = True
    container.ready = not spec.get("readinessProbe")
    moved(run)
    async with asyncio.TaskGroup() as tasks:
        if spec.get("readinessProbe"):
            tasks.create_task(_readiness(run, check, told, moved), name="readiness")
        if spec.get("livenessProbe"):
            tasks.create_task(_liveness(run, check, told, moved), name="liveness")


async def _readiness(run: ContainerRun, check: Check, told: Told, moved: Moved) -> None:
    async for passed in Verdicts("readinessProbe", run, check, told):
        if run.container.ready != passed:
            run.container.ready = passed
            moved(run)


async def _liveness(run: ContainerRun, check: Check, told: Told, moved: Moved) -> None:
    async for passed in Verdicts("livenessProbe", run, check, told):
        if not passed:
            _fail(run, "livenessProbe", told, moved)
            return


def _fail(run: ContainerRun, key: str, told: Told, moved: Moved) -> None:
    container = run.container
    container.unhealthy = True
    container.grace_s = run.spec[key].get("terminationGracePeriodSeconds")
    text = f"Container {container.name} failed {_NAMES[key].lower()} probe"
    told(run, "Killing", text if container.restart == NEVER else f"{text}, will be restarted")
    moved(run)


class Verdicts:
    """Runs a probe periodically, and yields its result whenever a threshold is reached."""

    def __init__(self, key: str, run: ContainerRun, check: Check, told: Told) -> None:
        self._name = _NAMES[key]
        self._probe: Obj = run.spec[key]
        self._run = run
        self._check = check
        self._told = told
        self._in_a_row = 0
        self._passed: bool | None = None
        self._pause_s = float(self._probe.get("initialDelaySeconds") or 0)

    def __aiter__(self) -> "Verdicts":
        return self

    async def __anext__(self) -> bool:
        while True:
            await asyncio.sleep(self._pause_s)
            self._pause_s = float(self._probe.get("periodSeconds") or 10)
            passed = await self._ask()
            if passed is None:
                continue  # as in every kubelet, it changes nothing
            self._in_a_row = self._in_a_row + 1 if passed == self._passed else 1
            self._passed = passed
            key = "successThreshold" if passed else "failureThreshold"
            if self._in_a_row >= (self._probe.get(key) or (1 if passed else 3)):
                return passed

    async def _ask(self) -> bool | None:
        try:
            await self._check(self._probe, self._run)
        except ActionErrored as error:
            text = f"{self._name} probe errored and resulted in unknown state: {error}"
            self._told(self._run, "Unhealthy", text)
            return None
        except ActionFailed as error:
            self._told(self._run, "Unhealthy", f"{self._name} probe failed: {error}")
            return False
        return True
