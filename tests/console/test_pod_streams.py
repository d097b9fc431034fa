"""Logs and terminals of pods through the console: whose rights they need, and when they end."""

import asyncio
import contextlib
import json
import re
import sys
from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest

from gpupool.console.pages.pod_terminal import end_words, size_of
from gpupool.console.rows.containers import chosen_container, container_names
from gpupool.testing import Cluster
from tests.console.test_console import IN_A_POD, POOLS, console, cookie_of, get, token_of
from tests.e2e.api import call
from tests.e2e.kubectl import eventually
from tests.e2e.objects import pod, shell

pytestmark = pytest.mark.timeout(600)

PODS = "/api/v1/namespaces/default/pods"
PAGE = "/clusters/cluster/pods/default/talks"
EVIL = "<script>document.title='broken'</script><img src=x onerror=alert(1)>"
PATIENCE_S = 120


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=POOLS) as running:
        script = f'echo "{EVIL}"; echo second; while :; do sleep 1; done'
        made = pod("talks", shell(script, "main"), shell("sleep 9999", "quiet"))
        assert call(running, "POST", PODS, made)[0] == 201
        eventually(
            lambda: call(running, "GET", f"{PODS}/talks")[1]["status"].get("phase") == "Running",
            within_s=120,
        )
        yield running


@pytest.fixture(scope="module")
def served(cluster: Cluster) -> Iterator[int]:
    with console(sys.executable, "-c", IN_A_POD, str(cluster.kubeconfig)) as (port, _):
        yield port


def owner(served: int, cluster: Cluster) -> str:
    return cookie_of(get(served, "/sign-in", form={"token": cluster.token})[2])


def viewer(served: int, cluster: Cluster) -> str:
    token = token_of(cluster, "looks")
    subjects = [{"kind": "ServiceAccount", "name": "looks", "namespace": "default"}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    binding = {"metadata": {"name": "looks"}, "subjects": subjects, "roleRef": role}
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
    assert call(cluster, "POST", path, binding)[0] in (201, 409)
    return cookie_of(get(served, "/sign-in", form={"token": token})[2])


@contextlib.asynccontextmanager
async def terminal(
    served: int, cookie: str, origin: str = ""
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    url = f"http://127.0.0.1:{served}{PAGE}/terminal/socket?container=main&shell=sh"
    headers = {"Cookie": cookie, "Origin": origin or f"http://127.0.0.1:{served}"}
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, headers=headers) as socket,
    ):
        yield socket


def test_a_log_is_plain_text_whatever_is_in_it(served: int, cluster: Cluster) -> None:
    cookie = owner(served, cluster)
    status, text, headers = get(served, f"{PAGE}/logs/text?container=main", cookie)
    assert (status, text) == (200, f"{EVIL}\nsecond\n")
    assert headers["Content-Type"].startswith("text/plain")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in headers["Content-Security-Policy"]


def test_a_download_is_a_file_with_a_safe_name(served: int, cluster: Cluster) -> None:
    cookie = owner(served, cluster)
    asked = f"{PAGE}/logs/text?container=main&download=1"
    assert get(served, asked, cookie)[2]["Content-Disposition"] == (
        'attachment; filename="talks-main.log"'
    )


@pytest.mark.parametrize(
    ("page", "wanted"),
    [("logs", ["log.js", "ansi.js"]), ("terminal", ["terminal.js", "screen.js", "ansi.js"])],
)
def test_the_page_brings_its_scripts(
    served: int, cluster: Cluster, page: str, wanted: list[str]
) -> None:
    text = get(served, f"{PAGE}/{page}", owner(served, cluster))[1]
    found = re.findall(r'(?:src|href)="/static/\w+/(\w+\.js)"', text)
    assert [name for name in found if name in wanted] == [*wanted[1:][::-1], wanted[0]]
    assert "heat.js" not in found


def test_the_name_of_a_container_in_the_address_is_never_markup(
    served: int, cluster: Cluster
) -> None:
    cookie = owner(served, cluster)
    for page in ("logs", "terminal"):
        status, text, _ = get(served, f"{PAGE}/{page}?container=%3Cscript%3E&shell=%3Cb%3E", cookie)
        assert status == 200
        assert "<script>" not in text
        assert "<b>" not in text
        assert "<option selected>main</option>" in text
    status, text, headers = get(served, f"{PAGE}/logs/text?container=%3Cscript%3E", cookie)
    assert status == 409
    assert headers["Content-Type"].startswith("text/plain")
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_run_that_never_was_is_refused_in_the_words_of_the_api_server(
    served: int, cluster: Cluster
) -> None:
    cookie = owner(served, cluster)
    status, text, _ = get(served, f"{PAGE}/logs/text?container=main&previous=1", cookie)
    assert status == 409
    assert "previous terminated container" in text


def test_a_visitor_who_may_only_view_reads_logs_and_gets_no_shell(
    served: int, cluster: Cluster
) -> None:
    cookie = viewer(served, cluster)
    assert get(served, f"{PAGE}/logs/text?container=main", cookie)[0] == 200
    lacks = "You do not have the right: create pods/exec --namespace default"
    page = get(served, PAGE, cookie)[1]
    assert f'aria-disabled="true" tabindex="0" title="{lacks}">Terminal' in page
    status, page, _ = get(served, f"{PAGE}/terminal", cookie)
    assert status == 200
    assert lacks in page
    assert "data-source" not in page
    assert get(served, f"{PAGE}/terminal/socket?container=main", cookie)[0] == 403


async def test_a_terminal_opens_only_from_a_page_of_the_console(
    served: int, cluster: Cluster
) -> None:
    cookie = owner(served, cluster)
    others = ("https://evil.example", "http://127.0.0.1:1", "null", f"https://127.0.0.1:{served}")
    for origin in others:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with terminal(served, cookie, origin):
                pass
        assert refused.value.status == 403
    with pytest.raises(aiohttp.WSServerHandshakeError):
        async with terminal(served, "nobody=1"):
            pass


async def test_a_terminal_runs_a_shell_and_says_how_it_ended(served: int, cluster: Cluster) -> None:
    async with terminal(served, owner(served, cluster)) as socket:
        await socket.send_str(json.dumps({"columns": 91, "rows": 17}))
        for nonsense in ("", "[]", "{", '{"columns": "x", "rows": 1}', '{"rows": 9}'):
            await socket.send_str(nonsense)
        await socket.send_bytes(b"stty size; echo in-$((40+2))\r")
        seen = b""
        while b"in-42" not in seen:
            seen += (await socket.receive(timeout=PATIENCE_S)).data
        assert b"17 91" in seen
        await socket.send_bytes(b"exit 3\r")
        while (message := await socket.receive(timeout=PATIENCE_S)).type.name == "BINARY":
            pass
        assert "exit code 3" in json.loads(message.data)["end"]
        assert (await socket.receive(timeout=PATIENCE_S)).type.name in ("CLOSE", "CLOSING")


async def test_a_terminal_and_a_log_end_with_the_session(served: int, cluster: Cluster) -> None:
    cookie = owner(served, cluster)
    followed = f"http://127.0.0.1:{served}{PAGE}/logs/text?container=main&follow=1"
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session,
        terminal(served, cookie) as socket,
        session.get(followed, headers={"Cookie": cookie}) as log,
    ):
        await socket.send_bytes(b"echo here\r")
        await socket.receive(timeout=PATIENCE_S)
        assert b"<script>" in await log.content.readline()
        await asyncio.to_thread(get, served, "/sign-out", cookie, "", {})
        async with asyncio.timeout(PATIENCE_S):
            async for _ in socket:
                pass
            await log.content.read()
        assert socket.closed


def test_the_size_of_a_terminal_is_checked() -> None:
    assert json.loads(size_of('{"columns": 80, "rows": 24}')) == {"Width": 80, "Height": 24}
    for wrong in ("", "null", '{"columns": 0, "rows": 1}', '{"columns": true, "rows": 1}'):
        assert size_of(wrong) == b""
    assert size_of('{"columns": 100000, "rows": 1}') == b""


def test_the_end_of_a_shell_is_said_only_when_something_is_wrong() -> None:
    assert end_words(b'{"status": "Success"}') == ""
    assert end_words(b'{"status": "Failure", "message": "exit code 1"}') == "exit code 1"
    twice = "command terminated with non-zero exit code: command terminated with exit code 3"
    code = {"causes": [{"reason": "ExitCode", "message": "3"}]}
    status = {"status": "Failure", "reason": "NonZeroExitCode", "message": twice, "details": code}
    assert end_words(json.dumps(status).encode()) == "exit code 3"
    assert end_words(json.dumps(status | {"details": {"causes": [7]}}).encode()) == twice
    assert end_words(json.dumps(status | {"details": None}).encode()) == twice
    assert end_words(b"container not found") == "container not found"


def test_helping_containers_come_after_the_others() -> None:
    spec = {"containers": [{"name": "a"}], "initContainers": [{"name": "b"}]}
    assert container_names({"spec": spec}) == ("a", "b")
    assert chosen_container(("a", "b"), "b") == "b"
    assert chosen_container(("a", "b"), "<script>") == "a"
