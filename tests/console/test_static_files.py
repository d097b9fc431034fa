"""Scripts and styles are read once by a browser, and again only when they have changed."""

import re

from gpupool.console.static_files import static_files, static_mark
from tests.console.conftest import Office
from tests.console.test_console import get


def test_every_module_is_announced_before_it_is_imported(office: Office) -> None:
    page = office.sees("pods")[1]
    wanted = {name for name in static_files() if name.endswith(".js")} - {"console.js"}
    found = set(re.findall(r'rel="modulepreload" href="/static/\w+/([\w.]+)"', page))
    assert found == wanted


def test_a_browser_keeps_what_has_the_present_mark(office: Office) -> None:
    status, page, headers = get(office.port, "/clusters/cluster/pods", office.cookie)
    assert (status, headers["Cache-Control"]) == (200, "no-store")
    addresses = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
    assert len(addresses) > 20
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
