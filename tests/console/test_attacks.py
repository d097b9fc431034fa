"""Attacks on the pages of workloads, configuration, services and creating: all have to fail."""

import http.client
from urllib.parse import quote

import pytest

from tests.console.conftest import Office
from tests.console.evil_objects import APPS, CORE, EVIL, KINDS, make_evil_objects
from tests.console.test_console import get, token_of
from tests.e2e.api import call
from tests.e2e.kubectl import eventually

pytestmark = pytest.mark.timeout(600)

DOORS = (
    "deployments/default/evil/scale",
    "deployments/default/evil/edit",
    "deployments/default/evil/undo",
    "deployments/default/evil/delete",
    "cronjobs/default/evil/run",
    "cronjobs/default/evil/suspend",
    "secrets/default/evil/show",
    "secrets/default/evil/edit",
    "services/default/evil/change",
    "create/service",
    "create",
    "create/form",
    "create/templates/x/delete",
    "pods/default/evil/edit",
)


@pytest.fixture(scope="module")
def evil(office: Office) -> Office:
    make_evil_objects(office.cluster)
    return office


@pytest.mark.parametrize("plural", KINDS)
def test_no_text_of_a_user_becomes_markup_or_a_script_link(evil: Office, plural: str) -> None:
    page = f"{plural}/default/evil"
    eventually(lambda: evil.sees(page)[0] == 200, within_s=60)
    for path in (plural, page, f"{page}/edit", f"{plural}?q={quote(EVIL)}"):
        status, text = evil.sees(path)
        assert status == 200
        assert "<script>" not in text
        assert "<img" not in text
        assert 'href="javascript:' not in text
    assert "&lt;script&gt;" in evil.sees(f"{page}/edit")[1], "the text is there, as a text"


def test_what_is_typed_comes_back_as_text(evil: Office) -> None:
    sent = (
        ("create", {"namespace": EVIL, "manifest": EVIL, "keep": EVIL, "dry": "yes"}),
        (
            "create",
            {"namespace": "default", "manifest": f"kind: {EVIL}", "keep": "", "dry": "keep"},
        ),
        (
            "create/form",
            {"name": EVIL, "image": EVIL, "replicas": EVIL, "ports": EVIL, "step": "preview"},
        ),
        ("create/service", {"name": EVIL, "selector": EVIL, "ports": EVIL, "type": EVIL}),
        (
            "deployments/default/evil/edit",
            {"manifest": f"metadata: '{EVIL}", "version": EVIL, "seen": EVIL},
        ),
        ("secrets/default/evil/show", {"key": EVIL}),
        ("secrets/default/evil/show", {"key": "x"}),
    )
    for path, form in sent:
        status, page, _ = evil.sends(path, **form)
        assert status in (200, 422)
        assert "<script>" not in page, path
        assert "<img" not in page, path


@pytest.mark.parametrize("path", DOORS)
def test_nothing_is_done_for_another_site_host_or_visitor(evil: Office, path: str) -> None:
    at = f"/clusters/cluster/{path}"
    for origin in ("https://evil.example", f"http://127.0.0.1:{evil.port + 1}", "null", ""):
        assert get(evil.port, at, evil.cookie, form={}, origin=origin)[0] == 403
    assert get(evil.port, at, evil.cookie, host="evil.example")[0] == 403
    status, _, headers = get(evil.port, at, "", form={})
    assert (status, headers["Location"][:8]) == (303, "/sign-in")
    for method in ("PUT", "DELETE", "PATCH"):
        connection = http.client.HTTPConnection("127.0.0.1", evil.port, timeout=60)
        connection.request(method, at, headers={"Cookie": evil.cookie})
        assert connection.getresponse().status in (403, 405)
        connection.close()


def test_a_viewer_changes_nothing_anywhere(evil: Office) -> None:
    before = evil.finds(f"{APPS}/deployments/evil")["spec"]
    viewer = evil.as_user("attack-viewer", "view")
    for path in DOORS:
        if path.startswith("create"):
            continue  # the API server decides, by what is to be made: see the next lines
        assert viewer.sends(f"{path}?namespace=default", **{"typed-name": "evil"})[0] in (403, 404)
    forms = (
        (
            "create",
            {
                "namespace": "default",
                "manifest": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stolen}",
                "dry": "",
                "keep": "",
            },
        ),
        (
            "create/form",
            {
                "name": "stolen",
                "kind": "Deployment",
                "namespace": "default",
                "image": "x",
                "replicas": "1",
                "gpu": "none",
                "units": "1",
                "cards": "1",
            },
        ),
    )
    for path, form in forms:
        status, page, _ = viewer.sends(path, **form)
        assert status == 422
        assert "forbidden" in page
    assert evil.finds(f"{APPS}/deployments/evil")["spec"] == before
    assert call(evil.cluster, "GET", f"{CORE}/configmaps/stolen")[0] == 404
    assert call(evil.cluster, "GET", f"{APPS}/deployments/stolen")[0] == 404


def test_a_token_that_ends_in_mid_session_leads_to_the_sign_in_page(evil: Office) -> None:
    """Its account is deleted: from then on the API server knows the token no more."""
    short = evil.as_user("short-lived", "edit")
    path = "deployments/default/evil/scale"
    assert short.sees(path)[0] == 200
    accounts = f"{CORE}/serviceaccounts/short-lived"
    assert call(evil.cluster, "DELETE", accounts)[0] == 200

    def is_out() -> bool:
        status, _, led = short.sends(path, replicas="7")
        return status == 303 and led.startswith("/sign-in?next=")

    eventually(is_out, within_s=120)
    assert evil.finds(f"{APPS}/deployments/evil")["spec"]["replicas"] == 0
    # The session is over, not only this request; a new token begins a new one.
    status, _, headers = get(evil.port, "/clusters/cluster/secrets", short.cookie)
    assert (status, headers["Location"]) == (303, "/sign-in?next=/clusters/cluster/secrets")
    assert (
        get(evil.port, "/sign-in", form={"token": token_of(evil.cluster, "short-again")})[0] == 303
    )
