"""History over HTTP: what a collector in a cluster answers, and how its clients ask.

It listens on the loopback interface of its pod, as agents do: port-forward leads there, with the
visitor's own rights (docs/decisions/0022-readings-by-port-forward.md).
"""

import asyncio
from collections.abc import Iterable, Sized
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlencode

import msgspec
from aiohttp import web

from gpupool.history.database import NoHistory
from gpupool.history.reader import MOST_POINTS, Points, Reader, Sums
from gpupool.history.samples import FIELDS
from gpupool.history.series import Kind
from kubeclient.client import Kube
from kubeclient.errors import KubeError, Refused
from kubeclient.port_forward import named_port, page_of_pod
from kubeclient.resources import PODS

PORT = 9447  # unless the chart says otherwise: the collector's pod has it by this name
PORT_NAME = "history"
APP = "gpupool-history"  # the value of the label app.kubernetes.io/name of the collector's pod
_SUMS, _POINTS = "/history/sums", "/history/points"
_MOST_BYTES = 64 * 1024 * 1024
_ANSWER_LIMIT_S = 60.0
_Answer = TypeVar("_Answer", Sums, Points)


class History(Protocol):
    """What commands and the console ask. Both methods raise NoHistory."""

    async def sums(
        self, kind: Kind, since_s: float, until_s: float | None = None, prefix: str = ""
    ) -> Sums:
        """The sums of all series of a kind over a time."""

    async def points(
        self,
        kind: Kind,
        name: str,
        since_s: float,
        until_s: float | None = None,
        most: int = MOST_POINTS,
    ) -> Points:
        """One series, point by point."""


class FileHistory:
    """Of a local cluster: the file in its data directory."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def sums(
        self, kind: Kind, since_s: float, until_s: float | None = None, prefix: str = ""
    ) -> Sums:
        return await asyncio.to_thread(
            lambda: self._ask(lambda reader: reader.sums(kind, since_s, until_s, prefix))
        )

    async def points(
        self,
        kind: Kind,
        name: str,
        since_s: float,
        until_s: float | None = None,
        most: int = MOST_POINTS,
    ) -> Points:
        return await asyncio.to_thread(
            lambda: self._ask(lambda reader: reader.points(kind, name, since_s, until_s, most))
        )

    def _ask(self, question: Any) -> Any:
        reader = Reader(self._path)
        try:
            return question(reader)
        finally:
            reader.close()


class ClusterHistory:
    """Of a cluster in which the collector of the chart runs."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        """`namespace`: that of the collector."""
        self._kube, self._namespace = kube, namespace

    async def sums(
        self, kind: Kind, since_s: float, until_s: float | None = None, prefix: str = ""
    ) -> Sums:
        given = {"kind": kind, "since": since_s, "until": until_s, "prefix": prefix}
        found = await self._page(_SUMS, given)
        sums = _understood(found, Sums)
        _check_figures(sample for _, sample in found["of"])
        return sums

    async def points(
        self,
        kind: Kind,
        name: str,
        since_s: float,
        until_s: float | None = None,
        most: int = MOST_POINTS,
    ) -> Points:
        given = {"kind": kind, "name": name, "since": since_s, "until": until_s, "most": most}
        found = await self._page(_POINTS, given)
        points = _understood(found, Points)
        _check_figures(sample for sample in found["values"] if sample is not None)
        return points

    async def _page(self, path: str, given: dict[str, Any]) -> Any:
        given = {**given, "figures": FIELDS}
        query = urlencode({key: value for key, value in given.items() if value is not None})
        try:
            async with asyncio.timeout(_ANSWER_LIMIT_S):
                pod, port = await self._collector()
                status, body = await page_of_pod(
                    self._kube,
                    self._namespace,
                    pod,
                    port,
                    f"{path}?{query}",
                    most_bytes=_MOST_BYTES,
                )
            if status != 200:
                raise NoHistory(body.decode("utf-8", "replace").strip()[:300])
            return msgspec.json.decode(body)
        except TimeoutError:
            raise NoHistory(f"the collector did not answer in {_ANSWER_LIMIT_S:.0f} s") from None
        except Refused as error:
            if error.code not in (401, 403):
                raise NoHistory(f"the collector cannot be asked: {error}") from error
            right = f"list pods, and get and create pods/portforward in {self._namespace}"
            raise NoHistory(f"you may not ask the collector: that needs to {right}") from error
        except (KubeError, msgspec.MsgspecError) as error:
            raise NoHistory(f"the collector did not answer: {error}") from error

    async def _collector(self) -> tuple[str, int]:
        """The name of its pod, and its port there."""
        query = {"labelSelector": f"app.kubernetes.io/name={APP}"}
        pods = (await self._kube.list(PODS, self._namespace, query=query)).items
        for pod in pods:
            if (pod.get("status") or {}).get("phase") == "Running":
                return str(pod["metadata"]["name"]), named_port(pod, PORT_NAME) or PORT
        raise NoHistory(
            f"no collector runs in namespace {self._namespace}: "
            "install the chart with history.enabled=true"
        )


def _understood(found: Any, kind: type[_Answer]) -> _Answer:
    """Raises NoHistory."""
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        raise NoHistory(f"the collector answered something else: {error}") from error


def _check_figures(samples: Iterable[Sized]) -> None:
    """A collector of before sends fewer, and they would be taken for others. Raises NoHistory."""
    if any(len(sample) != FIELDS for sample in samples):
        raise NoHistory(
            "the collector is of another version: upgrade the chart to the version of this gpupool"
        )


def history_app(path: Path) -> web.Application:
    history = FileHistory(path)

    async def sums(request: web.Request) -> web.Response:
        given = _checked(request)
        return await _answered(
            lambda: history.sums(
                Kind(given["kind"]), float(given["since"]), _until(given), given.get("prefix", "")
            )
        )

    async def points(request: web.Request) -> web.Response:
        given = _checked(request)
        return await _answered(
            lambda: history.points(
                Kind(given["kind"]),
                given["name"],
                float(given["since"]),
                _until(given),
                min(int(given.get("most", MOST_POINTS)), 5_000),
            )
        )

    app = web.Application()
    app.add_routes([web.get(_SUMS, sums), web.get(_POINTS, points)])
    return app


def _checked(request: web.Request) -> Any:
    """Its parameters. Figures have places, not names: a client of another version would take them
    for others."""
    if request.query.get("figures", str(FIELDS)) != str(FIELDS):
        raise web.HTTPBadRequest(text="ask it with a gpupool of the same version as the collector")
    return request.query


def _until(given: Any) -> float | None:
    return float(given["until"]) if "until" in given else None


async def _answered(question: Any) -> web.Response:
    try:
        found = await question()
    except NoHistory as error:
        return web.Response(status=503, text=str(error))
    except (KeyError, ValueError, OverflowError) as error:
        return web.Response(status=400, text=f"a wrong question: {error}")
    return web.Response(body=msgspec.json.encode(found), content_type="application/json")
