"""Names of replica sets and revisions come from the content of their template."""

from localkube.controllers import pods
from localkube.controllers.pods import content_hash

SMALL = {"spec": {"containers": [{"name": "c", "image": "é"}]}, "metadata": {"labels": {"a": "b"}}}
LARGE = {"spec": {"containers": [{"name": "c", "env": [{"name": "E", "value": "x" * 100_000}]}]}}


def test_the_name_of_a_template_stays_from_release_to_release() -> None:
    assert content_hash(SMALL) == "dc5f948fb"


def test_equal_content_gives_equal_names_and_a_collision_another() -> None:
    for content in (SMALL, LARGE):
        turned = dict(reversed(list(content.items())))
        assert content_hash(turned) == content_hash(content)
        assert content_hash(content, 1) != content_hash(content)


def test_a_change_at_any_place_of_a_large_template_gives_another_name() -> None:
    known = content_hash(LARGE)
    other = {
        "spec": {"containers": [{"name": "c", "env": [{"name": "E", "value": "x" * 100_001}]}]}
    }
    assert content_hash(other) != known


def test_a_large_template_is_not_gone_through_byte_by_byte() -> None:
    assert len(pods._text(LARGE)) < 100
