"""The page that is served in place of a notebook where JupyterLab is not installed."""

import re
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import gpupool
from gpupool.local.config.cluster_file import ClusterFile, default_cluster_text, parse_cluster
from gpupool.local.images import known_images
from kubeclient.objects import Obj
from tests.localkube.kubelet.world import World, pod, settings, world

IMAGE = "tensorflow/tensorflow:1.4.1-gpu-py3"
# Also where it is installed.
PAGE = {"name": "GPUPOOL_NOTEBOOK", "value": "page"}
FILE = parse_cluster(default_cluster_text())
assert isinstance(FILE, ClusterFile)
KNOWN = known_images(FILE.spec)


def notebooks(directory: Path) -> AbstractAsyncContextManager[World]:
    """A world whose containers may see the package that has the stand-in."""
    package = Path(gpupool.__file__).resolve().parent
    return world(directory, replace(settings(directory), images=KNOWN, packages=(package,)))


async def page(cluster: World, found: Obj, request: str, body: str = "", host: str = "a") -> str:
    connection = await cluster.streams.dial(found["metadata"]["uid"], 8888)
    head = f"{request}\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    await connection.write(f"{head}{body}".encode())
    answer = b""
    while chunk := await connection.read():
        answer += chunk
    await connection.close()
    return answer.decode()


async def test_without_a_password_the_log_has_a_token(tmp_path: Path) -> None:
    async with notebooks(tmp_path) as cluster:
        found = await cluster.run(pod("notebook", container={"image": IMAGE, "env": [PAGE]}))
        assert "Token" in await page(cluster, found, "GET / HTTP/1.0")
        assert " 403 " in await page(cluster, found, "GET /api/devices?token=wrong HTTP/1.0")
        said = (await cluster.log(found)).decode()
        token = re.search(r"\?token=(\w+)", said)
        assert token, said
        entered = await page(cluster, found, f"GET /?token={token[1]} HTTP/1.0")
        cookie = re.search(r"Set-Cookie: (session=[^;]+); HttpOnly; SameSite=Strict", entered)
        assert cookie, entered
        shown = await page(cluster, found, f"GET /api/devices HTTP/1.0\r\nCookie: {cookie[1]}")
        assert '"devices": ["/device:CPU:0"]' in shown
        home = await page(cluster, found, f"GET / HTTP/1.0\r\nCookie: {cookie[1]}")
        assert "no CUDA driver" in home
        assert "pip install &#x27;gpupool[notebook]&#x27;" in home
        assert "pip install 'gpupool[notebook]'" in said
        assert token[1] not in (await cluster.log(found)).decode().replace(said, "")


async def test_forms_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    env = [{"name": "PASSWORD", "value": "secret"}, PAGE]
    async with notebooks(tmp_path) as cluster:
        found = await cluster.run(pod("notebook", container={"image": IMAGE, "env": env}))
        for length in ("99999999", "-1", "many"):
            request = f"POST /login HTTP/1.0\r\nContent-Length: {length}"
            assert " 404 " in await page(cluster, found, request)
        assert " 401 " in await page(cluster, found, "POST /login HTTP/1.0")
        assert "token=" not in (await cluster.log(found)).decode()
