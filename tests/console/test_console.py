"""The console of a local cluster: who can sign in, and what each visitor sees."""

import contextlib
import http.client
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from gpupool.testing import Cluster
from tests.e2e.api import call
from tests.e2e.kubectl import eventually

POOLS = [{"name": "gpu", "instanceType": "ecs.gn6v-c8g1.2xlarge", "count": 1}]
PODS = "/api/v1/namespaces/default/pods"
# A console as it runs inside a pod: visitors sign in.
IN_A_POD = """
import asyncio, sys
from gpupool.cli.console import look
from gpupool.console.run import ConsoleSettings, by_token, run_console
from kubeclient.credentials import find_access
async def main():
    access = await find_access({}, kubeconfig=sys.argv[1])
    said = lambda port: print(f"at http://127.0.0.1:{port}/", flush=True)
    await run_console(None, by_token(access), look, ConsoleSettings(), said)
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=POOLS) as running:
        for name, cards in (("one", "1"), ("two", "2")):
            resources = {"limits": {"nvidia.com/gpu": cards}}
            container = {"name": "c", "image": "pause", "resources": resources}
            body = {"metadata": {"name": name}, "spec": {"containers": [container]}}
            assert call(running, "POST", PODS, body)[0] == 201
        placed = f"{PODS}/one"
        eventually(lambda: call(running, "GET", placed)[1]["spec"].get("nodeName"), within_s=60)
        yield running


@contextlib.contextmanager
def console(*arguments: str) -> Iterator[tuple[int, str]]:
    """Yields the console's port and key."""
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)/(?:\?key=(.+))?", process.stdout.readline())
        assert found is not None
        yield int(found[1]), found[2] or ""
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def own(cluster: Cluster) -> Iterator[tuple[int, str]]:
    program = (sys.executable, "-m", "gpupool", "console", "--port", "0")
    with console(*program, "--kubeconfig", str(cluster.kubeconfig)) as started:
        yield started


@pytest.fixture(scope="module")
def served(cluster: Cluster) -> Iterator[int]:
    with console(sys.executable, "-c", IN_A_POD, str(cluster.kubeconfig)) as (port, _):
        yield port


def get(
    port: int, path: str, cookie: str = "", host: str = "", form: dict[str, str] | None = None
) -> tuple[int, str, http.client.HTTPMessage]:
    headers = {"Cookie": cookie, "Host": host or f"127.0.0.1:{port}"}
    method, body = "GET", None
    if form is not None:
        method, body = "POST", urlencode(form)
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers


def cookie_of(headers: http.client.HTTPMessage) -> str:
    return headers["Set-Cookie"].split(";")[0]


def signed_in(own: tuple[int, str]) -> str:
    port, key = own
    status, _, headers = get(port, f"/?key={key}")
    assert status == 303
    assert headers["Location"] == "/"
    assert "HttpOnly" in headers["Set-Cookie"]
    assert "SameSite=Strict" in headers["Set-Cookie"]
    return cookie_of(headers)


def test_the_printed_address_opens_it(own: tuple[int, str]) -> None:
    status, page, headers = get(own[0], "/", signed_in(own))
    assert status == 200
    assert "Tesla V100-SXM2-16GB" in page
    assert ">one</a>" in page
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"


def test_a_pod_that_waits_has_its_page(own: tuple[int, str]) -> None:
    cookie = signed_in(own)
    assert "default/two" in get(own[0], "/waiting", cookie)[1]
    status, page, _ = get(own[0], "/pods/default/two", cookie)
    assert status == 200
    assert "Insufficient nvidia.com/gpu" in page
    assert get(own[0], "/pods/default/nobody", cookie)[0] == 404


def test_nobody_signs_in_without_the_key(own: tuple[int, str]) -> None:
    port, key = own
    for path in ("/", "/pods", "/waiting", "/pods/default/one"):
        status, _, headers = get(port, path, "gpupool-console=x")
        assert (status, headers["Location"]) == (303, "/sign-in")
    status, page, headers = get(port, f"/?key={key}x")
    assert status == 403
    assert "not the key" in page
    assert "Set-Cookie" not in headers
    assert get(port, "/sign-in", form={"token": "t"})[0] == 404, "the owner's console takes none"


def test_a_session_ends_with_the_sign_out(own: tuple[int, str]) -> None:
    cookie = signed_in(own)
    assert get(own[0], "/sign-out", cookie, form={})[0] == 303
    assert get(own[0], "/", cookie)[0] == 303


def test_requests_for_another_host_are_refused(own: tuple[int, str]) -> None:
    assert get(own[0], "/", signed_in(own), host="evil.example:80")[0] == 403
    assert get(own[0], "/", signed_in(own), host="localhost:9")[0] == 200


@pytest.mark.parametrize("path", ["/static/../server.py", "/static/x.css", "/%00", "/pods/a/b/c"])
def test_a_missing_page_has_a_message(own: tuple[int, str], path: str) -> None:
    status, page, _ = get(own[0], path, signed_in(own))
    assert status == 404
    assert "Traceback" not in page


def test_unexpected_queries_get_a_page(own: tuple[int, str]) -> None:
    cookie = signed_in(own)
    for query in ("?page=-1", "?page=99999999999", "?page=%F0", "?q=%3Cb%3E"):
        status, page, _ = get(own[0], f"/{query}", cookie)
        assert status == 200
        assert "<b>" not in page


def test_a_visitor_signs_in_with_his_own_token(served: int, cluster: Cluster) -> None:
    assert "Your token of the cluster" in get(served, "/sign-in")[1]
    status, _, headers = get(served, "/sign-in", form={"token": cluster.token})
    assert status == 303
    assert "Tesla V100" in get(served, "/", cookie_of(headers))[1]


def test_a_wrong_token_is_refused_with_a_message(served: int) -> None:
    status, page, headers = get(served, "/sign-in", form={"token": "wrong"})
    assert status == 403
    assert "The cluster refuses: Unauthorized" in page
    assert "Set-Cookie" not in headers
    for bad in ("", "a\nb: c", "é"):
        assert get(served, "/sign-in", form={"token": bad})[0] == 400
    assert get(served, "/sign-in", form={"token": "x" * 20_000})[0] == 413
    assert get(served, "/?key=")[0] == 403


def test_a_token_without_rights_is_refused(served: int, cluster: Cluster) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    made = call(cluster, "POST", path, {"spec": {}})[1]["status"]["token"]
    status, page, _ = get(served, "/sign-in", form={"token": made})
    assert status == 403
    assert "cannot list resource" in page


@pytest.mark.clients
def test_a_browser_shows_it(own: tuple[int, str], tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("NO BROWSER: there is no chromium on this machine")
    port, key = own
    quiet = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync")
    network = ("--disable-background-networking", "--disable-component-update", "--disable-quic")
    done = subprocess.run(
        [
            browser,
            *quiet,
            *network,
            f"--user-data-dir={tmp_path}",
            "--dump-dom",
            f"http://127.0.0.1:{port}/?key={key}",
        ],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert ">one</a>" in done.stdout
