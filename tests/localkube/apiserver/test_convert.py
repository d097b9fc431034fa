"""Objects in other versions than the stored one."""

from localkube.apiserver.defaults.convert import from_storage, to_storage
from localkube.apiserver.kinds import Kind

OLD = Kind(
    group="example.com",
    version="v1",
    kind="Toy",
    plural="toys",
    singular="toy",
    namespaced=True,
    verbs=("get",),
    custom=True,
    storage_version="v1",
)
NEW = Kind(
    group="example.com",
    version="v2",
    kind="Toy",
    plural="toys",
    singular="toy",
    namespaced=True,
    verbs=("get",),
    custom=True,
    storage_version="v1",
)


def test_versions_of_a_custom_kind_differ_in_their_name_alone() -> None:
    sent = {"apiVersion": "example.com/v2", "kind": "Toy", "spec": {"a": 1}}
    stored = to_storage(sent, NEW)
    assert stored == {"apiVersion": "example.com/v1", "kind": "Toy", "spec": {"a": 1}}
    assert from_storage(stored, NEW) == sent
    assert from_storage(stored, OLD) == stored
