"""What each service account of the chart may do, read from its rendered roles and bindings."""

from collections.abc import Iterable, Iterator

from kubeclient.objects import Obj

# account -> "resource.group", "=name" if only of that name, "@namespace" if only there -> verbs
Rights = dict[str, dict[str, set[str]]]
# Of Kubernetes itself.
_KNOWN = {
    "system:auth-delegator": [
        {
            "apiGroups": ["authentication.k8s.io"],
            "resources": ["tokenreviews"],
            "verbs": ["create"],
        },
        {
            "apiGroups": ["authorization.k8s.io"],
            "resources": ["subjectaccessreviews"],
            "verbs": ["create"],
        },
    ]
}


def rights(objects: Iterable[Obj]) -> Rights:
    """Of all service accounts that are bound. Raises AssertionError for a binding that cannot be
    followed, or that binds anybody else: its rights would be missing in what is returned."""
    listed = list(objects)
    roles = {(each["kind"], each["metadata"]["name"]): each for each in listed if _is_role(each)}
    for name, rules in _KNOWN.items():
        roles["ClusterRole", name] = {"metadata": {"name": name}, "rules": rules}
    found: Rights = {}
    for binding in listed:
        if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
        where = _where(binding)
        for subject in binding["subjects"]:
            assert subject["kind"] == "ServiceAccount", subject
            held = found.setdefault(subject["name"], {})
            for what, verbs in _of_role(role):
                held.setdefault(f"{what}{where}", set()).update(verbs)
    return found


def _is_role(each: Obj) -> bool:
    return each["kind"] in ("Role", "ClusterRole")


def _where(binding: Obj) -> str:
    return f"@{binding['metadata']['namespace']}" if binding["kind"] == "RoleBinding" else ""


def _of_role(role: Obj) -> Iterator[tuple[str, list[str]]]:
    assert "aggregationRule" not in role, role["metadata"]["name"]
    for rule in role["rules"]:
        names = [f"={name}" for name in rule.get("resourceNames", ())] or [""]
        for path in rule.get("nonResourceURLs", ()):
            yield path, rule["verbs"]
        for group in rule.get("apiGroups", ()):
            for resource in rule["resources"]:
                for name in names:
                    yield f"{resource}{'.' if group else ''}{group}{name}", rule["verbs"]
