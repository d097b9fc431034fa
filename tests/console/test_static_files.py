"""Scripts and styles are read once by a browser, and again only when they have changed."""

import re

import pytest

from gpupool.console.static_files import scripts_of, static_files, static_mark
from tests.console.conftest import Office
from tests.console.test_console import get


def scripts(page: str) -> tuple[set[str], set[str]]:
    """What it starts, and what it announces."""
    started = re.findall(r'<script type="module" src="/static/\w+/([\w.]+)"', page)
    return set(started), set(re.findall(r'rel="modulepreload" href="/static/\w+/([\w.]+)"', page))


FRAME = {"dialogue.js", "frame.js", "live.js", "morph.js", "scripts.js", "search.js", "times.js"}


@pytest.mark.parametrize(
    ("path", "own", "imported"),
    [
        ("pods", set(), set()),
        ("map", {"panel.js"}, set()),
        ("create", {"create.js", "editor.js"}, {"checks.js", "suggest.js", "yaml_place.js"}),
    ],
)
def test_a_page_has_the_scripts_that_it_needs_and_no_others(
    office: Office, path: str, own: set[str], imported: set[str]
) -> None:
    assert scripts(office.sees(path)[1]) == ({"console.js"} | own, FRAME | imported)


def test_every_script_that_is_imported_is_announced() -> None:
    """Otherwise a browser asks for them one after another."""
    files = static_files()
    for name in (each for each in files if each.endswith(".js")):
        found = scripts_of(f'<p data-script="{name.removesuffix(".js")}">')
        for known in {*found.started, *found.imported}:
            direct = set(re.findall(r'"\./(\w+\.js)"', files[known].text))
            assert direct <= {*found.started, *found.imported}


def test_a_name_in_a_page_leads_to_no_file_that_is_no_script() -> None:
    assert scripts_of(
        '<p data-script="none"><p data-script="../x"><p data-script="icon">'
    ).started == ("console.js",)


def test_a_browser_keeps_what_has_the_present_mark(office: Office) -> None:
    status, page, headers = get(office.port, "/clusters/cluster/pods", office.cookie)
    assert (status, headers["Cache-Control"]) == (200, "no-store")
    addresses = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
    assert len(addresses) > 10
    for address in addresses:
        assert address.startswith(f"/static/{static_mark()}/")
        status, _, headers = get(office.port, address, "")
        assert status == 200, address
        assert headers["Cache-Control"] == "public, max-age=31536000, immutable"


def test_another_mark_is_answered_and_not_kept(office: Office) -> None:
    """A page that was open before the console was renewed."""
    for address in ("/static/0123456789ab/morph.js", "/static/morph.js"):
        status, text, headers = get(office.port, address, "")
        assert (status, headers["Cache-Control"]) == (200, "no-store")
        assert "export function morph" in text
    for address in ("/static/x/..%2Fserver.py", "/static/..%2Fserver.py", "/static/x/none.js"):
        assert get(office.port, address, "")[0] == 404
