"""ConfigMaps and Secrets in the console: who sees what, and when."""

import base64
import re

import pytest

from gpupool.console.pages.configuration import decoded
from tests.console.conftest import Office
from tests.console.test_console import get
from tests.console.test_edit import form_of
from tests.e2e.api import call

pytestmark = pytest.mark.timeout(600)

CORE = "/api/v1/namespaces/default"
EVIL = "<script>document.title='broken'</script>"
PLAIN, HIDDEN = "hunter2", base64.b64encode(b"hunter2").decode()


@pytest.fixture(scope="module")
def secret(office: Office) -> str:
    """Made as by kubectl apply, which notes the whole object in an annotation."""
    applied = {"kubectl.kubernetes.io/last-applied-configuration": f'{{"data":"{HIDDEN}"}}'}
    metadata = {"name": "door", "annotations": applied}
    data = {"password": HIDDEN, "blob": base64.b64encode(b"\xff\x00").decode(), "evil": "PGI+"}
    office.makes(f"{CORE}/secrets", {"metadata": metadata, "data": data})
    return "secrets/default/door"


def test_no_page_has_the_value_of_a_secret(office: Office, secret: str) -> None:
    for path in ("secrets", secret, f"{secret}/show?key=password", "search?q=door"):
        status, page = office.sees(path)
        assert status == 200
        assert PLAIN not in page
        assert HIDDEN not in page
    assert "password" in office.sees(secret)[1], "only what it is called"


def test_a_value_is_shown_to_whoever_asks_for_it(office: Office, secret: str) -> None:
    status, page, _ = office.sends(f"{secret}/show", key="password")
    assert status == 200
    assert f"<code>{PLAIN}</code>" in page
    page = office.sends(f"{secret}/show", key="evil")[1]
    assert "<code>&lt;b&gt;</code>" in page
    assert "It is no text" in office.sends(f"{secret}/show", key="blob")[1]
    assert office.sends(f"{secret}/show", key="nothing")[0] == 422
    foreign = get(
        office.port, f"/clusters/cluster/{secret}/show", office.cookie, form={}, origin="https://e"
    )
    assert foreign[0] == 403


def test_whoever_may_not_get_a_secret_sees_none(office: Office, secret: str) -> None:
    viewer = office.as_user("secret-viewer", "view")
    for path in (
        "secrets",
        "secrets?namespace=default",
        secret,
        f"{secret}/show",
        f"{secret}/edit",
    ):
        status, page = viewer.sees(path)
        assert status == 403
        assert "secrets" in page
        assert "hunter" not in page
    assert viewer.sends(f"{secret}/show", key="password")[0] == 403
    lists = {
        "metadata": {"name": "secret-names"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch"]}],
    }
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    assert call(office.cluster, "POST", roles, lists)[0] == 201
    lister = office.as_user("secret-lister", "secret-names")
    status, page = lister.sees(secret)
    assert status == 200
    assert "You do not have the right: get secrets --namespace default" in page
    assert lister.sends(f"{secret}/show", key="password")[0] == 403


def test_a_config_map_is_made_seen_changed_and_deleted(office: Office) -> None:
    page = office.sees("create?sample=configmap")[1]
    form = {**form_of(page), "namespace": "default"}
    text = form["manifest"].replace("blue", EVIL)
    assert office.sends("create", **{**form, "manifest": text, "dry": ""})[0] == 303
    status, page = office.sees("configmaps/default/my-settings")
    assert status == 200
    assert EVIL not in page
    assert "colour = &lt;script&gt;" in page
    form = form_of(office.sees("configmaps/default/my-settings/edit")[1])
    form["manifest"] = re.sub(r"colour = .*", "colour = red", form["manifest"])
    page = office.sends("configmaps/default/my-settings/edit", **form)[1]
    saved = {**form_of(page), "step": "save"}
    assert office.sends("configmaps/default/my-settings/edit", **saved)[0] == 303
    data = office.finds(f"{CORE}/configmaps/my-settings")["data"]
    assert data == {"settings.ini": "[main]\ncolour = red\n"}
    named = {"typed-name": "my-settings"}
    assert office.sends("configmaps/default/my-settings/delete", **named)[2] == "configmaps"
    assert call(office.cluster, "GET", f"{CORE}/configmaps/my-settings")[0] == 404


def test_large_and_binary_content_is_told_in_words(office: Office) -> None:
    data, binary = {"long": "x" * 50_000}, {"picture": base64.b64encode(b"\xff" * 7).decode()}
    made = {"metadata": {"name": "large"}, "data": data, "binaryData": binary}
    office.makes(f"{CORE}/configmaps", made)
    page = office.sees("configmaps/default/large")[1]
    assert "… and 30000 more characters" in page
    assert "7 bytes that are no text" in page


def test_values_are_decoded_only_if_they_are_text() -> None:
    assert decoded(HIDDEN) == (PLAIN, True)
    assert decoded(base64.b64encode("密码\n\tx\n".encode()).decode()) == ("密码\n\tx\n", True)
    assert decoded("") == ("", True)
    for no_text in (
        "not base64!",
        base64.b64encode(b"\xff").decode(),
        base64.b64encode(b"a\x1b[2Jb").decode(),
    ):
        assert decoded(no_text) == (no_text, False)
