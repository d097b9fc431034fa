"""Pages that say why there is no other lead on, and tell strangers nothing."""

import pytest

from tests.console.conftest import Office
from tests.console.test_console import get

SIDE = '<nav class="side"'


@pytest.mark.parametrize("path", ["nope", "pods/default/none", "nope/a/b?x=1"])
def test_a_missing_page_has_the_side_bar_for_those_who_are_signed_in(
    office: Office, path: str
) -> None:
    status, page = office.sees(path)
    assert status == 404
    assert 'href="/clusters/cluster/nodes"' in page
    assert "<option>kube-system</option>" in page
    strangers = get(office.port, f"/clusters/cluster/{path}")[1]
    assert SIDE not in strangers
    assert "kube-system" not in strangers


def test_a_page_that_one_may_not_see_has_the_side_bar(office: Office) -> None:
    status, page = office.as_user("nobody-special").sees("nodes")
    assert status == 403
    assert SIDE in page
    assert "kube-system" not in page


def test_a_page_of_a_cluster_that_does_not_exist_has_none(office: Office) -> None:
    status, page, _ = get(office.port, "/clusters/none/pods", office.cookie)
    assert status == 404
    assert SIDE not in page
