"""Pods that come and go on a whole cluster, and are used in every way while they are there."""

import asyncio
import contextlib
import random
from dataclasses import dataclass, field

from gpupool.testing import Cluster
from kubeclient.access import Access, trust
from kubeclient.client import Kube
from kubeclient.errors import KubeError
from kubeclient.objects import Obj
from kubeclient.port_forward import page_of_pod
from kubeclient.resources import CONFIG_MAPS, PODS
from testbed.processes import free_port

NAMESPACE = "default"
SPOKEN = "hello from the pod"
_SERVER = (
    "import http.server, sys; print('{}', flush=True); "
    "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), "
    "http.server.SimpleHTTPRequestHandler).serve_forever()"
)
_LOOK_EVERY_S = 0.1
_PATIENCE_S = 60.0


def access_to(cluster: Cluster) -> Access:
    token = cluster.token

    async def authorization() -> str:
        return f"Bearer {token}"

    return Access(cluster.url, trust(ca_file=str(cluster.ca)), authorization)


def pod(name: str, *command: str, gpu: bool) -> Obj:
    container: Obj = {"name": "main", "image": "python:3", "command": list(command)}
    if gpu:
        container["resources"] = {"limits": {"aliyun.com/gpu-mem": "1"}}
    volumes: list[Obj] = [
        {"name": "empty", "emptyDir": {}},
        {"name": "map", "configMap": {"name": "shared"}},
    ]
    container["volumeMounts"] = [
        {"name": "empty", "mountPath": "/empty"},
        {"name": "map", "mountPath": "/map"},
    ]
    spec: Obj = {
        "containers": [container],
        "volumes": volumes,
        "terminationGracePeriodSeconds": 1,
        "restartPolicy": "Never",
    }
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


@dataclass
class Churn:
    kube: Kube
    draw: random.Random
    has_gpus: bool
    made: int = 0
    heard: int = 0
    problems: list[str] = field(default_factory=list)

    async def round(self, pods: int) -> None:
        """All at once; when it is over, nothing of them is left."""
        watching = asyncio.create_task(self._watch())
        try:
            numbers = range(self.made, self.made + pods)
            self.made += pods
            await asyncio.gather(*(self._life(f"churn-{number}") for number in numbers))
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            events = self.kube.watch(PODS, NAMESPACE, query={"timeoutSeconds": "2"})
            async with contextlib.aclosing(events):
                async for _ in events:
                    self.heard += 1

    async def _life(self, name: str) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                if self.draw.random() < 0.3:
                    await self._short_life(name)
                else:
                    await self._served_life(name)
                await self.kube.delete(PODS, name, NAMESPACE)
                await self._until(name, "")
        except (KubeError, TimeoutError) as error:
            self.problems.append(f"{name}: {error!r}")

    async def _short_life(self, name: str) -> None:
        gpu = self.has_gpus and self.draw.random() < 0.3
        await self.kube.create(PODS, pod(name, "echo", SPOKEN, gpu=gpu))
        await self._until(name, "Succeeded", "Failed")
        await self._read_log(name)

    async def _served_life(self, name: str) -> None:
        port = free_port()
        command = ("python", "-c", _SERVER.format(SPOKEN), str(port))
        await self.kube.create(PODS, pod(name, *command, gpu=self.has_gpus))
        await self._until(name, "Running")
        await self._read_log(name)
        await self._exec(name)
        with contextlib.suppress(KubeError):  # it may not listen yet
            await page_of_pod(self.kube, NAMESPACE, name, port, "/", most_bytes=1 << 20)
        body = {"metadata": {"name": name, "namespace": NAMESPACE}, "data": {"a": "x" * 2000}}
        await self.kube.create(CONFIG_MAPS, body)
        await self.kube.delete(CONFIG_MAPS, name, NAMESPACE)

    async def _until(self, name: str, *phases: str) -> None:
        while await self._phase(name) not in phases:  # noqa: ASYNC110 - it asks, as clients do
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _phase(self, name: str) -> str:
        """Empty: there is no such pod."""
        found = (await self.kube.list(PODS, NAMESPACE)).items
        for each in found:
            if each["metadata"]["name"] == name:
                return str(each.get("status", {}).get("phase", "Pending"))
        return ""

    async def _read_log(self, name: str) -> None:
        # The end of a log comes as text; a client of objects reads it as a stream.
        chunks = self.kube._transport.stream(
            PODS.path(NAMESPACE, name, "log"), query={}, headers={"accept": "*/*"}
        )
        async with contextlib.aclosing(chunks):
            async for _ in chunks:
                break

    async def _exec(self, name: str) -> None:
        path = PODS.path(NAMESPACE, name, "exec")
        query = {"command": "env", "stdout": "true", "container": "main"}
        async with self.kube.websocket(path, query=query, protocol="v5.channel.k8s.io") as exec_:
            said = b""
            while (message := await exec_.receive()) is not None:
                said += message[1:]
        if b"PATH=" not in said:
            self.problems.append(f"{name}: exec said {said[:200]!r}")
