"""The events page and the search of the console: pure parts, and what users control in them."""

from gpupool.console.pages.addresses import address_of
from gpupool.console.pages.search import rank_of
from gpupool.console.sessions import Session
from gpupool.console.visit import Visit
from gpupool.console.words import ENGLISH, translator


def visit() -> Visit:
    session = object.__new__(Session)  # addresses need nothing of it
    return Visit(session, "training", translator(ENGLISH), {}, {}, {})


def test_an_object_is_shown_on_its_page() -> None:
    assert address_of(visit(), "Pod", "a", "web-0") == "/clusters/training/pods/a/web-0"
    assert address_of(visit(), "Node", "", "n1") == "/clusters/training/nodes/n1"
    assert address_of(visit(), "Secret", "a", "web") == "/clusters/training/secrets/a/web"
    assert address_of(visit(), "NodePool", "", "cgpu") == "/clusters/training/pools/cgpu"
    assert address_of(visit(), "Lease", "a", "web") == ""


def test_names_in_addresses_lead_nowhere_else() -> None:
    evil = address_of(visit(), "Pod", "../..", "x?y=javascript:alert(1)#")
    assert evil == "/clusters/training/pods/..%2F../x%3Fy%3Djavascript%3Aalert%281%29%23"


def test_the_name_itself_comes_before_names_that_contain_it() -> None:
    assert [rank_of(name, "web") for name in ("web", "web-0", "my-web")] == [0, 1, 2]
