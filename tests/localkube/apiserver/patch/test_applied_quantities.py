"""Server-side apply of quantities. `3` is stored as "3"; the answers are Kubernetes 1.35.8's."""

from typing import Any

import orjson
import pytest

from localkube.apiserver.kinds import Kind
from localkube.apiserver.patch.managed_fields import Writer
from localkube.apiserver.patch.server_side_apply import apply
from localkube.apiserver.schema.load import schema_of
from localkube.apiserver.status import ApiError

T1 = "2026-01-01T00:00:01Z"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def limited(amount: Any, **annotations: str) -> Any:
    pod = {"containers": [{"name": "c", "resources": {"limits": {"example.com/thing": amount}}}]}
    metadata: Any = {"name": "s", "annotations": annotations} if annotations else {"name": "s"}
    spec = {"template": {"spec": pod}}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}


def test_a_quantity_that_is_written_otherwise_than_it_is_stored_is_another_one() -> None:
    """As Kubernetes' own field manager says: it compares what was written with what is stored."""
    kind = Kind("apps", "v1", "StatefulSet", "statefulsets", "statefulset", True, ())
    schema = schema_of("apps", "v1", "StatefulSet")
    writer = Writer("kubectl", T1)
    live = limited("3", **{LAST_APPLIED: orjson.dumps(limited(3)).decode()})
    apply(live, limited("3"), writer, kind, schema, force=False)
    for other in (3, "3000m"):
        with pytest.raises(ApiError) as caught:
            apply(live, limited(other), writer, kind, schema, force=False)
        (cause,) = caught.value.status["details"]["causes"]
        assert cause["field"].endswith(".resources.limits.example.com/thing")
