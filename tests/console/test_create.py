"""Creating from templates: those that come with it, those that visitors keep, and the checks."""

import html
import re

import pytest

from gpupool.console.pages.create import kinds_in
from gpupool.console.starters import STARTERS
from tests.console.conftest import Office
from tests.e2e.api import call

pytestmark = pytest.mark.timeout(600)

CORE = "/api/v1/namespaces/default"
KEPT = f"{CORE}/configmaps/gpupool-console-templates"
EVIL = "<img src=x onerror=alert(1)>"


def form(text: str, **more: str) -> dict[str, str]:
    return {"namespace": "default", "manifest": text, "dry": "", "keep": "", **more}


@pytest.mark.parametrize("name", STARTERS)
def test_every_template_to_begin_with_is_accepted_by_the_server(office: Office, name: str) -> None:
    status, page = office.sees(f"create?sample={name}")
    assert status == 200
    assert html.escape(STARTERS[name], quote=False).splitlines()[0] in page
    status, page, _ = office.sends("create", **form(STARTERS[name], dry="yes"))
    assert status == 200, page
    assert "The API server would accept it" in page


def test_the_button_says_what_it_will_do(office: Office) -> None:
    both = f"{STARTERS['deployment']}---\n{STARTERS['service']}---\n{STARTERS['service']}"
    assert kinds_in(both) == "1 Deployment, 2 Service"
    assert kinds_in("") == kinds_in("  kind: Pod") == kinds_in(f"kind: {EVIL}") == ""
    page = office.sends("create", **form(both, dry="yes"))[1]
    assert ">Create 1 Deployment, 2 Service</button>" in page


def test_a_template_is_kept_loaded_and_deleted(office: Office) -> None:
    text = f"# {EVIL}\n{STARTERS['configmap']}"
    status, _, led = office.sends("create", **form(text, dry="keep", keep="mine"))
    assert (status, led) == (303, "create?own=mine")
    assert office.finds(KEPT)["data"] == {"mine": text}
    assert office.sends("create", **form("other", dry="keep", keep="second.one"))[0] == 303
    page = office.sees("create?own=mine")[1]
    assert html.escape(EVIL, quote=False) in page
    assert EVIL not in page
    assert "own=second.one" in page
    assert office.sends("create/templates/mine/delete")[::2] == (303, "create")
    assert office.finds(KEPT)["data"] == {"second.one": "other"}
    for bad in ("", "a/b", "../x", EVIL, "x" * 64, "-"):
        status, page, _ = office.sends("create", **form("text", dry="keep", keep=bad))
        assert status == 422
        assert EVIL not in page
    assert office.sends("create", **form("x" * 300_000, dry="keep", keep="big"))[0] == 422


def test_whoever_may_only_look_keeps_and_deletes_no_templates(office: Office) -> None:
    assert office.sends("create", **form("text", dry="keep", keep="held"))[0] == 303
    viewer = office.as_user("template-viewer", "view")
    assert "own=held" in viewer.sees("create?namespace=default")[1]
    status, page, _ = viewer.sends("create", **form("text", dry="keep", keep="held"))
    assert status == 422
    assert "forbidden" in page
    assert viewer.sends("create/templates/held/delete?namespace=default")[0] == 403
    status, page, _ = viewer.sends("create", **form(STARTERS["configmap"]))
    assert status == 422
    assert "forbidden" in page
    assert call(office.cluster, "GET", f"{CORE}/configmaps/my-settings")[0] == 404
    nobody = office.as_user("template-nobody")
    assert "Keep as a template" not in nobody.sees("create")[1]


def test_unknown_fields_are_marked_at_their_line(office: Office) -> None:
    text = STARTERS["configmap"].replace("\ndata:", "\ndtaa:")
    status, page, _ = office.sends("create", **form(text))
    assert status == 422
    marked = re.search(r'data-wrong="(\d+)"', page)
    assert marked is not None
    assert text.splitlines()[int(marked[1]) - 1] == "dtaa:"
