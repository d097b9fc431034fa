"""The API server's data files are as they were recorded, all from one Kubernetes version."""

import hashlib
from pathlib import Path

from localkube.apiserver import data

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
