"""What a record keeps beside its bytes: the fields that selectors ask for."""

import pytest

from localkube.apiserver.store.record import field_value, field_values

POD = {
    "metadata": {"name": "a"},
    "spec": {"nodeName": "n1", "hostNetwork": True, "odd": ["x"]},
    "status": {"replicas": 3, "phase": None},
    "kind": "Pod",
}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("kind", "Pod"),
        ("spec.nodeName", "n1"),
        ("spec.hostNetwork", "true"),
        ("spec.schedulerName", ""),
        ("spec.unschedulable", "false"),
        ("spec.nodeName.below", ""),
        ("nothing.at.all", ""),
        ("status.replicas", "3"),
        ("status.successful", "0"),
        ("status.phase", ""),
    ],
)
def test_a_field_is_known_as_text(path: str, text: str) -> None:
    assert field_value(POD, path) == text


def test_fields_come_in_the_order_in_which_they_are_asked_for() -> None:
    paths = ("spec.nodeName", "spec.odd", "status.replicas", "spec.hostNetwork", "kind")

    assert field_values(POD, paths) == tuple(field_value(POD, path) for path in paths)
    assert field_values(POD, paths) == ("n1", "['x']", "3", "true", "Pod")
