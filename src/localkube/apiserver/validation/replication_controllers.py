"""ReplicationControllers: the predecessor of ReplicaSets, with a plain map as selector."""

from kubeclient.objects import Obj
from localkube.apiserver.validation.apps import NO_MATCH, always_running
from localkube.apiserver.validation.errors import Errors, invalid, not_negative, required
from localkube.apiserver.validation.formats import long_name
from localkube.apiserver.validation.metadata import own_meta, own_meta_update
from localkube.apiserver.validation.pods import template


def create(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], long_name)
    _spec(errors, obj["spec"])
    return errors


def update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    _spec(errors, new["spec"])
    return errors


def _spec(errors: Errors, spec: Obj) -> None:
    not_negative(errors, spec.get("minReadySeconds", 0), "spec.minReadySeconds")
    if not spec.get("selector"):
        errors.append(required("spec.selector"))
    not_negative(errors, spec["replicas"], "spec.replicas")
    if "template" not in spec:
        errors.append(required("spec.template"))
        return
    found = spec["template"]["metadata"].get("labels", {})
    if any(found.get(key) != value for key, value in spec.get("selector", {}).items()):
        errors.append(invalid("spec.template.metadata.labels", found or None, NO_MATCH))
    template(errors, spec["template"], "spec.template")
    always_running(errors, spec["template"]["spec"], "ReplicationController")
