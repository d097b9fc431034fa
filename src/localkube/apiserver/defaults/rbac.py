"""Defaults of role bindings."""

from kubeclient.objects import Obj

_GROUP = "rbac.authorization.k8s.io"


def role_binding(value: Obj) -> None:
    if not value["roleRef"]["apiGroup"]:
        value["roleRef"]["apiGroup"] = _GROUP
    for subject in value.get("subjects", ()):
        if subject["kind"] in ("User", "Group"):
            subject.setdefault("apiGroup", _GROUP)
