"""Watches that begin with what is there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.in_process import Served

PATH = "/api/v1/namespaces/ns/configmaps"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    found = Served(tmp_path, ("ns",))
    yield found
    found.close()


def initial(version: str) -> dict[str, str]:
    return {
        "resourceVersion": version,
        "resourceVersionMatch": "NotOlderThan",
        "sendInitialEvents": "true",
        "allowWatchBookmarks": "true",
    }


def test_a_watch_is_not_led_back_behind_what_its_client_has_seen(served: Served) -> None:
    following = served.watch(PATH, initial("999999"))
    served.wait_for(following, 1)
    (event,) = following.events
    assert event["type"] == "ERROR"
    assert event["object"]["code"] == 504
    assert event["object"]["message"].startswith("Timeout: Too large resource version: 999999, ")
    served.stop(following)


def test_a_watch_from_a_known_version_begins_with_all_objects(served: Served) -> None:
    _, made = served.call("POST", PATH, {"metadata": {"name": "a"}})
    following = served.watch(PATH, initial(made["metadata"]["resourceVersion"]))
    served.wait_for(following, 2)
    added, bookmark = following.events
    assert (added["type"], added["object"]["metadata"]["name"]) == ("ADDED", "a")
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    served.stop(following)
