"""JupyterLab in a container: its settings, and the real server where it is installed."""

import re
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest

import gpupool
from gpupool.local.programs.jupyter import (
    flags,
    is_installed,
    package_variables,
    settings,
    start_directory,
)
from kubeclient.objects import Obj
from tests.local.test_notebook import IMAGE, KNOWN, page
from tests.localkube.kubelet import world as kubelet_world
from tests.localkube.kubelet.world import World, pod, world

real = pytest.mark.skipif(
    not is_installed(), reason="NO JUPYTERLAB: no notebook was tested. Install it: make browser"
)
RUNNING = "is running at:"


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        ([], []),
        (["--ServerApp.base_url=/x"], ["--ServerApp.base_url=/x"]),
        (["start-notebook.py", "--no-mathjax", "x"], ["--no-mathjax", "x"]),
        (["jupyter", "lab", "--debug"], ["--debug"]),
        (["start-notebook.sh"], []),
    ],
)
def test_args_are_flags_of_jupyter(args: list[str], wanted: list[str]) -> None:
    assert flags(args) == wanted


def test_notebooks_are_in_the_working_directory_a_volume_or_the_home(tmp_path: Path) -> None:
    env = {"HOME": "/root", "LOCALKUBE_ROOT": str(tmp_path)}
    assert start_directory(env, "/data") == Path("/data")
    assert start_directory(env, "/") == Path("/root")
    (tmp_path / "notebooks").mkdir()
    assert start_directory(env, "/") == tmp_path / "notebooks"


def test_packages_are_installed_into_the_home_directory_and_found_there() -> None:
    assert package_variables({"HOME": "/root", "PYTHONPATH": "/stand-ins"}) == {
        "PIP_TARGET": "/root/.local/pip-packages",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONPATH": "/root/.local/pip-packages:/stand-ins",
    }
    assert package_variables({"HOME": "/root", "PIP_TARGET": "/mine"})["PYTHONPATH"] == "/mine"


def test_a_terminal_keeps_the_variables_of_the_container() -> None:
    shell = settings(Path("/root"), "", has_own_view=True)["ServerApp"]["terminado_settings"]
    assert not set(shell["shell_command"]) & {"-l", "--login"}


def test_kernels_use_no_ports_where_the_container_has_its_own_files() -> None:
    made = settings(Path("/root"), "hash", has_own_view=True)
    assert made["KernelManager"] == {"transport": "ipc"}
    assert made["PasswordIdentityProvider"]["hashed_password"] == "hash"
    assert "KernelManager" not in settings(Path("/x"), "", has_own_view=False)


def notebooks(directory: Path, *, isolate: bool = True) -> AbstractAsyncContextManager[World]:
    package = Path(gpupool.__file__).resolve().parent
    chosen = replace(kubelet_world.settings(directory), images=KNOWN, packages=(package,))
    return world(directory, replace(chosen, isolate=isolate))


def notebook(name: str, image: str = IMAGE, **env: str) -> Obj:
    variables = [{"name": key, "value": value} for key, value in env.items()]
    return pod(name, container={"image": image, "env": variables})


async def sign_in(cluster: World, found: Obj, password: str) -> str:
    """The answer to the form, sent as the browser sends it."""
    form = await page(cluster, found, "GET /login HTTP/1.0")
    cookie = re.search(r"Set-Cookie: (_xsrf=([^;]+))", form)
    assert cookie, form
    body = urlencode({"password": password, "_xsrf": cookie[2]})
    head = f"POST /login HTTP/1.0\r\nCookie: {cookie[1]}\r\nContent-Length: {len(body)}"
    kind = "Content-Type: application/x-www-form-urlencoded"
    return await page(cluster, found, f"{head}\r\n{kind}", body)


@real
@pytest.mark.parametrize("isolate", [True, False])
async def test_the_password_of_the_document_opens_it(tmp_path: Path, isolate: bool) -> None:
    async with notebooks(tmp_path, isolate=isolate) as cluster:
        found = await cluster.run(notebook("n", PASSWORD="mypassw0rd"))
        await cluster.logged(found, RUNNING)
        assert " 403 " in await page(cluster, found, "GET /api/contents HTTP/1.0")
        assert " 401 " in await sign_in(cluster, found, "wrong")
        entered = await sign_in(cluster, found, "mypassw0rd")
        assert " 302 " in entered
        said = (await cluster.log(found)).decode()
        assert "token" not in said
        assert "mypassw0rd" not in said


@real
async def test_without_a_password_the_log_has_a_token(tmp_path: Path) -> None:
    async with notebooks(tmp_path) as cluster:
        found = await cluster.run(notebook("n"))
        said = await cluster.logged(found, "Or copy and paste")
        token = re.search(r"http://localhost:8888/lab\?token=(\w+)", said)
        assert token, said
        ask = "GET /api/contents?token={} HTTP/1.0"
        assert " 200 " in await page(cluster, found, ask.format(token[1]))
        assert " 403 " in await page(cluster, found, ask.format("wrong"))


@real
async def test_two_notebooks_have_the_same_port_and_different_tokens(tmp_path: Path) -> None:
    image = "quay.io/jupyter/base-notebook:2026-11-09"
    async with notebooks(tmp_path) as cluster:
        first = await cluster.run(notebook("a", image, JUPYTER_TOKEN="one"))
        second = await cluster.run(notebook("b", image, JUPYTER_TOKEN="two"))
        ask = "GET /api/contents?token={} HTTP/1.0"
        assert " 200 " in await page(cluster, first, ask.format("one"))
        assert " 403 " in await page(cluster, first, ask.format("two"))
        assert " 200 " in await page(cluster, second, ask.format("two"))
        said = (await cluster.log(first)).decode()
        assert "token=..." in said
        assert "one" not in re.findall(r"token=(\S+)", said)


@real
async def test_without_any_secret_it_answers_under_names_of_this_machine_only(
    tmp_path: Path,
) -> None:
    open_to_all = {"image": "jupyter/base-notebook", "args": ["--IdentityProvider.token="]}
    async with notebooks(tmp_path) as cluster:
        found = await cluster.run(pod("n", container=open_to_all))
        ask = "GET /api/contents HTTP/1.0"
        assert " 200 " in await page(cluster, found, ask, host="localhost")
        assert " 403 " in await page(cluster, found, ask, host="evil.example")


@real
async def test_it_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    async with notebooks(tmp_path) as cluster:
        found = await cluster.run(notebook("n", PASSWORD="x"))
        await cluster.logged(found, RUNNING)
        await cluster.delete("n", grace_s=60)
        said = await cluster.logged(found, "Shutting down")
        assert "Traceback" not in said
        await cluster.until_gone("n")
