"""The API server's data files are as they were recorded, all from one Kubernetes version."""

import hashlib
from pathlib import Path

from localkube.apiserver import data
from localkube.apiserver.schema.load import definition_names

FOLDER = Path(data.__file__).parent
MANIFEST = data.read("recorded.json")


def test_every_recorded_file_has_the_digest_that_was_noted() -> None:
    files = [path for path in FOLDER.iterdir() if ".json" in path.suffixes]
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    del found["recorded.json"]
    assert found == MANIFEST["sha256"], "renew all of them with make schemas"


def test_the_definitions_are_of_the_version_that_was_noted() -> None:
    version: str = data.read("definitions.json")["version"]
    assert MANIFEST["kubernetes"].startswith(f"{version}.")


def test_there_is_a_shape_for_every_kind_that_is_stored() -> None:
    shapes = data.read("shapes.json")
    kinds = {
        f"{row['group']}/{row['version']}/{row['kind']}".removeprefix("/")
        for row in data.read("kinds.json")
        if row["group"] != "metrics.k8s.io"
    }
    assert kinds <= shapes["kinds"].keys()
    assert set(shapes["kinds"].values()) <= shapes["shapes"].keys()


def test_every_kind_can_be_read_from_protobuf() -> None:
    messages = data.read("protobuf.json")
    unread = {
        definition
        for (group, version, kind), definition in definition_names().items()
        if (group, version, kind) in _served() and definition not in messages
    }
    assert unread == set()
    within = {row[2] for rows in messages.values() for row in rows.values() if len(row) > 2}
    assert within <= messages.keys()


def _served() -> set[tuple[str, str, str]]:
    return {
        (each["group"], each["version"], each["kind"])
        for row in data.read("kinds.json")
        for each in (row, *row.get("subresources", ()))
        if row["group"] != "metrics.k8s.io"
    }
