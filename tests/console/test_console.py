"""The console of a local cluster: who can sign in, and what each visitor sees."""

import contextlib
import http.client
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from gpupool.testing import Cluster
from tests.e2e.api import call
from tests.e2e.kubectl import eventually

POOLS = [{"name": "gpu", "instanceType": "ecs.gn6v-c8g1.2xlarge", "count": 1}]
PODS = "/api/v1/namespaces/default/pods"
# A console as it runs inside a pod: visitors sign in.
IN_A_POD = """
import asyncio, sys
from gpupool.cli.console import new_model
from gpupool.console.run import ConsoleSettings, by_token, run_console
from kubeclient.credentials import find_access
async def main():
    access = await find_access({}, kubeconfig=sys.argv[1])
    said = lambda port: print(f"at http://127.0.0.1:{port}/", flush=True)
    await run_console(None, by_token(access), new_model, ConsoleSettings(), said)
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
        link = r"(?:localhost|127\.0\.0\.1):(\d+)/(?:\?key=(.+))?"
        found = re.search(link, process.stdout.readline())
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
    port: int,
    path: str,
    cookie: str = "",
    host: str = "",
    form: dict[str, str] | None = None,
    origin: str | None = None,
) -> tuple[int, str, http.client.HTTPMessage]:
    headers = {"Cookie": cookie, "Host": host or f"127.0.0.1:{port}"}
    method, body = "GET", None
    if form is not None:
        method, body = "POST", urlencode(form)
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        headers["Origin"] = f"http://127.0.0.1:{port}" if origin is None else origin
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
    assert headers["Location"].endswith("/overview"), "the key does not stay in the address"
    assert "HttpOnly" in headers["Set-Cookie"]
    assert "SameSite=Strict" in headers["Set-Cookie"]
    return cookie_of(headers)


def page_of(own: tuple[int, str], path: str) -> str:
    """The short address leads to the page of the cluster."""
    cookie = signed_in(own)
    status, _, headers = get(own[0], path, cookie)
    assert status == 303
    status, page, _ = get(own[0], headers["Location"], cookie)
    assert status == 200
    return page


def home(own: tuple[int, str]) -> str:
    return f"/clusters/{cluster_name(own)}"


def cluster_name(own: tuple[int, str]) -> str:
    location = get(own[0], "/")[2]["Location"]
    return location.split("/")[2]


def test_the_printed_address_opens_it(own: tuple[int, str]) -> None:
    port, cookie = own[0], signed_in(own)
    status, page, headers = get(port, f"{home(own)}/overview", cookie)
    assert status == 200
    assert "Tesla V100-SXM2-16GB" in page
    assert ">one</span></a>" in page
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=", page)
    assert headers["Cache-Control"] == "no-store"


def test_a_pod_that_waits_has_its_page(own: tuple[int, str]) -> None:
    assert "default/two" in page_of(own, "/waiting")
    page = page_of(own, "/pods/default/two")
    assert "Waits for 2 whole cards." in page
    assert "Insufficient nvidia.com/gpu" in page
    assert "What would help:" in page
    cookie = signed_in(own)
    status, page, _ = get(own[0], f"{home(own)}/pods/default/nobody", cookie)
    assert status == 404
    assert "nobody" in page


def test_lists_show_nodes_and_pods(own: tuple[int, str]) -> None:
    nodes = page_of(own, "/nodes")
    assert "1 of 1 nodes are ready." in nodes
    assert "1 × Tesla V100-SXM2-16GB" in nodes
    pods = page_of(own, "/pods")
    assert "card 0: 16130 MiB, whole card" in pods
    assert "wants 2 whole cards" in pods


def test_nobody_signs_in_without_the_key(own: tuple[int, str]) -> None:
    port, key = own
    for page in ("overview", "pods", "waiting", "pods/default/one", "nodes/x/cordon"):
        path = f"{home(own)}/{page}"
        status, _, headers = get(port, path, f"gpupool-console-{port}=x")
        assert status == 303
        assert headers["Location"] == f"/sign-in?next={path}"
    status, page, headers = get(port, f"/?key={key}x")
    assert status == 403
    assert "not the key" in page
    assert "Set-Cookie" not in headers
    assert get(port, "/sign-in", form={"token": "t"})[0] == 404, "the owner's console takes none"


def test_a_session_ends_with_the_sign_out(own: tuple[int, str]) -> None:
    cookie = signed_in(own)
    assert get(own[0], "/sign-out", cookie, form={})[0] == 303
    assert get(own[0], f"{home(own)}/pods", cookie)[0] == 303


def test_requests_for_another_host_are_refused(own: tuple[int, str]) -> None:
    path = f"{home(own)}/overview"
    for host in ("evil.example:80", "localhost.evil.example", "evillocalhost", "localhost."):
        assert get(own[0], path, signed_in(own), host=host)[0] == 403
    for host in (f"localhost:{own[0]}", f"any-word.localhost:{own[0]}"):
        assert get(own[0], "/static/console.css", host=host)[0] == 200


def test_changes_come_only_from_pages_of_the_console(
    own: tuple[int, str], cluster: Cluster
) -> None:
    node = call(cluster, "GET", "/api/v1/nodes")[1]["items"][0]["metadata"]["name"]
    path, cookie = f"{home(own)}/nodes/{node}/cordon", signed_in(own)

    def is_cordoned() -> bool:
        spec = call(cluster, "GET", f"/api/v1/nodes/{node}")[1]["spec"]
        return bool(spec.get("unschedulable"))

    # A page on another port of this machine is the same site: the browser sends the cookie.
    for origin in ("https://evil.example", "http://127.0.0.1:1", "null", ""):
        assert get(own[0], path, cookie, form={}, origin=origin)[0] == 403
    assert not is_cordoned()
    assert "kubectl cordon" in get(own[0], path, cookie)[1]
    assert not is_cordoned(), "a GET changes nothing"
    status, _, headers = get(own[0], path, cookie, form={})
    assert (status, headers["Location"]) == (303, f"{home(own)}/nodes/{node}")
    assert is_cordoned()
    assert get(own[0], path.replace("cordon", "uncordon"), cookie, form={})[0] == 303
    assert not is_cordoned()


def test_labels_are_changed_and_mistakes_are_said_at_the_field(
    own: tuple[int, str], cluster: Cluster
) -> None:
    node = call(cluster, "GET", "/api/v1/nodes")[1]["items"][0]
    name, labels = node["metadata"]["name"], node["metadata"]["labels"]
    path, cookie = f"{home(own)}/nodes/{name}/labels", signed_in(own)
    text = "\n".join(f"{key}={value}" for key, value in labels.items())
    status, page, _ = get(own[0], path, cookie, form={"labels": f"{text}\nno value"})
    assert status == 422
    assert "wanted key=value, found: no value" in page
    assert get(own[0], path, cookie, form={"labels": f"{text}\nteam=a"})[0] == 303
    changed = call(cluster, "GET", f"/api/v1/nodes/{name}")[1]["metadata"]["labels"]
    assert changed == {**labels, "team": "a"}
    assert get(own[0], path, cookie, form={"labels": text})[0] == 303
    changed = call(cluster, "GET", f"/api/v1/nodes/{name}")[1]["metadata"]["labels"]
    assert changed == labels


@pytest.mark.parametrize("path", ["/static/../server.py", "/static/x.css", "/%00", "/pods/a/b/c"])
def test_a_missing_page_has_a_message(own: tuple[int, str], path: str) -> None:
    status, page, _ = get(own[0], path, signed_in(own))
    assert status == 404
    assert "Traceback" not in page


def test_unexpected_queries_get_a_page(own: tuple[int, str]) -> None:
    cookie = signed_in(own)
    for query in ("?page=-1", "?page=99999999999", "?page=%F0", "?q=%3Cb%3E", "?sort=%3Cb%3E"):
        status, page, _ = get(own[0], f"{home(own)}/pods{query}", cookie)
        assert status == 200
        assert "<b>" not in page


def test_the_browser_chooses_the_language_and_the_visitor_another(own: tuple[int, str]) -> None:
    cookie, path = signed_in(own), f"{home(own)}/nodes"
    status, _, headers = get(own[0], f"{path}?q=x&language=zh-CN", cookie)
    assert (status, headers["Location"]) == (303, f"{path}?q=x")
    page = get(own[0], path, f"{cookie}; {cookie_of(headers)}")[1]
    assert "节点池" in page
    assert "1 个节点中有 1 个就绪。" in page


@pytest.mark.parametrize("path", ["//evil.example/x", "////evil.example/x", "/\\\\evil.example/x"])
def test_no_choice_of_a_theme_leads_to_another_host(own: tuple[int, str], path: str) -> None:
    status, _, headers = get(own[0], f"{path}?theme=dark")
    assert status == 303
    assert headers["Location"].replace("%5C", "/").lstrip("/") == "evil.example/x"
    assert headers["Location"][:2] not in ("//", "/\\")


def test_a_visitor_signs_in_with_his_own_token_and_comes_back(
    served: int, cluster: Cluster
) -> None:
    assert "Your token of the cluster" in get(served, "/sign-in")[1]
    wanted = "/sign-in?next=%2Fclusters%2Fcluster%2Fnodes"
    status, _, headers = get(served, wanted, form={"token": cluster.token})
    assert (status, headers["Location"]) == (303, "/clusters/cluster/nodes")
    assert "Tesla V100" in get(served, headers["Location"], cookie_of(headers))[1]
    for evil in ("//evil.example", "https://evil.example", "/\\evil.example"):
        status, _, headers = get(
            served, f"/sign-in?next={quote(evil, safe='')}", form={"token": cluster.token}
        )
        assert headers["Location"] == "/"


def test_a_console_that_serves_others_has_one_cluster(served: int, cluster: Cluster) -> None:
    cookie = cookie_of(get(served, "/sign-in", form={"token": cluster.token})[2])
    for path in ("cluster/clusters", "cluster/create/cluster", "gpupool-default/nodes"):
        assert get(served, f"/clusters/{path}", cookie)[0] == 404
        assert get(served, f"/clusters/{path}", cookie, form={"name": "x"})[0] in (404, 405)
    assert "/clusters/cluster/clusters" not in get(served, "/clusters/cluster/pods", cookie)[1]


def test_a_wrong_token_is_refused_with_a_message(served: int) -> None:
    status, page, headers = get(served, "/sign-in", form={"token": "wrong"})
    assert status == 403
    assert "The cluster does not accept this token." in page
    assert "Set-Cookie" not in headers
    for bad in ("", "a\nb: c", "é"):
        assert get(served, "/sign-in", form={"token": bad})[0] == 400
    assert get(served, "/sign-in", form={"token": "x" * 5_000_000})[0] == 413
    assert get(served, "/?key=")[0] == 403


def token_of(cluster: Cluster, name: str) -> str:
    path = "/api/v1/namespaces/default/serviceaccounts"
    call(cluster, "POST", path, {"metadata": {"name": name}})
    return str(call(cluster, "POST", f"{path}/{name}/token", {"spec": {}})[1]["status"]["token"])


def test_a_token_without_rights_sees_which_right_it_lacks(served: int, cluster: Cluster) -> None:
    status, _, headers = get(served, "/sign-in", form={"token": token_of(cluster, "nobody")})
    assert status == 303
    cookie = cookie_of(headers)
    for page, right in (("nodes", "list nodes"), ("pods", "list pods --all-namespaces")):
        status, page, _ = get(served, f"/clusters/cluster/{page}", cookie)
        assert status == 403
        assert f"You do not have the right: {right}" in page
        assert "Tesla" not in page


def test_a_visitor_of_one_namespace_sees_it_and_may_change_nothing(
    served: int, cluster: Cluster
) -> None:
    token = token_of(cluster, "reader")
    subjects = [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    binding = {"metadata": {"name": "reader"}, "subjects": subjects, "roleRef": role}
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
    assert call(cluster, "POST", path, binding)[0] == 201
    cookie = cookie_of(get(served, "/sign-in", form={"token": token})[2])
    assert get(served, "/clusters/cluster/pods", cookie)[0] == 403
    status, page, _ = get(served, "/clusters/cluster/pods?namespace=default", cookie)
    assert status == 200
    assert "card 0: 16130 MiB, whole card" in page
    assert 'aria-disabled="true"' in page
    assert "You do not have the right: delete pods --namespace default" in page
    deletion = "/clusters/cluster/pods/default/one/delete"
    assert get(served, deletion, cookie, form={})[0] == 403
    assert call(cluster, "GET", f"{PODS}/one")[0] == 200
    page = get(served, "/clusters/cluster/pods/default/two", cookie)[1]
    assert "you need the right to see all nodes and pods" in page
    for refused in (
        "pods/default/one/resize",
        "nodes/n/cards/0/cordon",
        "nodes/n/cards/0/uncordon",
    ):
        assert get(served, f"/clusters/cluster/{refused}", cookie, form={"units": "1"})[0] == 403


def test_without_a_collector_pages_say_why_there_is_no_past(own: tuple[int, str]) -> None:
    cookie = signed_in(own)
    for path in ("overview", "pods/default/one", "overview?range=%3Cb%3E"):
        status, page, _ = get(own[0], f"{home(own)}/{path}", cookie)
        assert status == 200
        assert "There is no history to show: no collector runs in namespace kube-system" in page


def test_a_card_or_pod_that_is_not_there_is_said_in_words(own: tuple[int, str]) -> None:
    cookie = signed_in(own)
    for query, words in (
        ("?card=GPU-none", "There is no such card (any more)."),
        ("?pod=default/none", "There is no such pod (any more)."),
        ("?pod=%3Cb%3E", "There is no such pod (any more)."),
        ("?self=x&parts=y&pod=a", "There is no such pod (any more)."),
        ("?health=%3Cb%3E&free=%3Cb%3E", "Wanted a number of GiB"),
    ):
        status, page, _ = get(own[0], f"{home(own)}/map{query}", cookie)
        assert status == 200
        assert words in page
        assert "<b>" not in page
    node = re.search(r'id="node-([^"]+)"', get(own[0], f"{home(own)}/map", cookie)[1])
    assert node is not None
    path = f"{home(own)}/nodes/{node[1]}/cards/7/cordon"
    status, page, _ = get(own[0], path, cookie, form={"reason": ""})
    assert status == 422
    assert "Card &#34;7&#34; of node" in page
    assert get(own[0], path, cookie, form={"reason": ""}, origin="http://evil.example")[0] == 403


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
    assert ">one</span></a>" in done.stdout
