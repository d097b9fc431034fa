"""Events, as stored (core/v1); stricter for those that come by events.k8s.io/v1."""

from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    invalid,
    invalid_each,
    required,
    unchanged,
)
from localkube.apiserver.validation.formats import dns_subdomain, label_key, size
from localkube.apiserver.validation.metadata import own_meta, own_meta_update

_SHORT_MAX = 128
_MESSAGE_MAX = 1024
_TEXTS = ("reason", "message", "type", "action", "reportingInstance")
_NO_MATCH = "does not match event.namespace"


def create_core(obj: Obj) -> Errors:
    errors: Errors = []
    _event(errors, obj, "reportingComponent")
    return errors


def update_core(new: Obj, old: Obj) -> Errors:
    return create_core(new)


def create_new(obj: Obj) -> Errors:
    errors: Errors = []
    _event(errors, obj, "reportingController")
    own_meta(errors, obj["metadata"], dns_subdomain)
    _series(errors, obj)
    if not obj.get("eventTime"):
        errors.append(required("eventTime"))
    kind = obj.get("type", "")
    if kind not in ("Normal", "Warning"):
        errors.append(invalid("type", "", f"has invalid value: {kind}"))
    for name in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if obj.get(name):
            errors.append(invalid(name, "", "needs to be unset"))
    return errors


def update_new(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    _event(errors, new, "reportingController")
    own_meta_update(errors, new["metadata"], old["metadata"])
    if new.get("series") != old.get("series"):
        _series(errors, new)
    for name in ("involvedObject", "reason"):
        _same(errors, new, old, name)
    for name in ("message", "source", "firstTimestamp", "lastTimestamp", "count"):
        _same(errors, new, old, name)
    for name in ("reason", "type", "eventTime", "action"):
        _same(errors, new, old, name)
    _same(errors, new, old, "related")
    now, before = (obj.get("reportingComponent", "") for obj in (new, old))
    unchanged(errors, now, before, "reportingController")
    _same(errors, new, old, "reportingInstance")
    return errors


def _same(errors: Errors, new: Obj, old: Obj, name: str) -> None:
    if new.get(name) == old.get(name):
        return
    value: Any = new.get(name)
    if value is None and name in _TEXTS:
        value = ""
    elif value is None and name == "count":
        value = 0
    errors.append(invalid(name, value, "field is immutable"))


def _event(errors: Errors, obj: Obj, reporter: str) -> None:
    namespace = obj["metadata"].get("namespace", "")
    about = obj["involvedObject"].get("namespace", "")
    if obj.get("eventTime"):
        if not about and namespace not in ("default", "kube-system"):
            errors.append(invalid("involvedObject.namespace", about, _NO_MATCH))
        _reported(errors, obj, reporter)
    else:
        expected = about or ("default" if namespace == "default" else "")
        if namespace != expected:
            errors.append(invalid("involvedObject.namespace", about, _NO_MATCH))
    invalid_each(errors, "namespace", namespace, dns_subdomain(namespace))


def _reported(errors: Errors, obj: Obj, reporter: str) -> None:
    by = obj.get("reportingComponent", "")
    if not by:
        errors.append(required(reporter))
    invalid_each(errors, reporter, by, label_key(by))
    for name in ("reportingInstance", "action", "reason"):
        text = obj.get(name, "")
        if not text:
            errors.append(required(name))
        if size(text) > _SHORT_MAX:
            errors.append(invalid(name, "", f"can have at most {_SHORT_MAX} characters"))
    if size(obj.get("message", "")) > _MESSAGE_MAX:
        errors.append(invalid("message", "", f"can have at most {_MESSAGE_MAX} characters"))


def _series(errors: Errors, obj: Obj) -> None:
    series = obj.get("series")
    if series is None:
        return
    if series.get("count", 0) < 2:
        errors.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errors.append(required("series.lastObservedTime"))
