"""Names, labels, annotations, owners and finalizers, of all kinds."""

from typing import Any

import pytest

from localkube.apiserver.kinds import Kind
from localkube.apiserver.validation.validate import validate_create, validate_update
from tests.localkube.apiserver.validation import rules_subject
from tests.localkube.apiserver.validation.single_changes import Obj

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or"
    " '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used"
    " for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
).replace("\\\\", "\\")
LABEL_1123 = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and"
    " must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used"
    " for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an"
    " alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123',"
    " regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end"
    " with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for"
    " validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}


def config_map(**metadata: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **metadata}}


def said(obj: Obj) -> list[str]:
    return [f"{field}: {message}" for _, field, message in rules_subject.created(obj)]


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("ConfigMap", "A_b", f'Invalid value: "A_b": {SUBDOMAIN}'),
        (
            "ConfigMap",
            "a" * 254,
            f'Invalid value: "{"a" * 254}": must be no more than 253 characters',
        ),
        ("Namespace", "a.b", 'Invalid value: "a.b": must not contain dots'),
        ("Namespace", "A", f'Invalid value: "A": {LABEL_1123}'),
        ("Service", "1a", f'Invalid value: "1a": {LABEL_1035}'),
    ],
)
def test_a_name_must_be_of_the_form_that_its_kind_wants(
    kind: str, name: str, expected: str
) -> None:
    obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
    obj |= {"spec": {"ports": [{"port": 1}], "clusterIP": "None"}} if kind == "Service" else {}
    assert f"metadata.name: {expected}" in said(obj)


@pytest.mark.parametrize("name", ["system:admin", "A_b", "a b", "1"])
def test_a_role_may_have_nearly_any_name(name: str) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": name},
    }
    assert said(role) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a/b", "Invalid value: \"a/b\": may not contain '/'"),
        ("a%b", "Invalid value: \"a%b\": may not contain '%'"),
        ("..", "Invalid value: \"..\": may not be '..'"),
        ("", "Required value: name or generateName is required"),
    ],
)
def test_a_roles_name_must_fit_in_a_url(name: str, expected: str) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": name},
    }
    assert said(role) == [f"metadata.name: {expected}"]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"labels": {"a b": ""}}, f'labels: Invalid value: "a b": {KEY}'),
        (
            {"labels": {"a": "x" * 64}},
            f'labels: Invalid value: "{"x" * 64}": must be no more than 63 bytes',
        ),
        ({"annotations": {"a b": "any"}}, f'annotations: Invalid value: "a b": {KEY}'),
        (
            {"annotations": {"a": "x" * 262_144}},
            "annotations: Too long: may not be more than 262144 bytes",
        ),
        (
            {"finalizers": ["f"]},
            'finalizers[0]: Invalid value: "f": name is neither a standard finalizer name nor is it'
            " fully qualified",
        ),
        (
            {"ownerReferences": [{**OWNER, "uid": ""}]},
            'ownerReferences.uid: Invalid value: "": must not be empty',
        ),
        (
            {"ownerReferences": [OWNER, {**OWNER, "name": "q", "uid": "v"}]},
            "ownerReferences: Invalid value: "
            '[{"apiVersion":"v1","controller":true,"kind":"Pod","name":"p","uid":"u"},'
            '{"apiVersion":"v1","controller":true,"kind":"Pod","name":"q","uid":"v"}]: Only one'
            ' reference can have Controller set to true. Found "true" in references for Pod/p and'
            " Pod/q",
        ),
        (
            {"ownerReferences": [{**OWNER, "kind": "Event"}]},
            'ownerReferences: Invalid value: {"apiVersion":"v1","controller":true,"kind":"Event",'
            '"name":"p","uid":"u"}: /v1, Kind=Event is disallowed from being an owner',
        ),
    ],
)
def test_faulty_metadata_is_told(metadata: Obj, expected: str) -> None:
    assert said(config_map(**metadata)) == [f"metadata.{expected}"]


def test_what_a_name_is_made_from_must_have_its_form() -> None:
    assert said(config_map(generateName="A_b-"))[0].startswith(
        "metadata.generateName: Invalid value"
    )


def update(old: Obj, **metadata: Any) -> list[str]:
    new = {**old, "metadata": {**old["metadata"], **metadata}}
    errors = validate_update(new, old, rules_subject.kind_of(old))
    return list(dict.fromkeys(f"{error.field}: {error.message}" for error in errors))


STORED = config_map(namespace="d", uid="u", resourceVersion="1", creationTimestamp="t")


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"uid": "other"}, 'uid: Invalid value: "other": field is immutable'),
        ({"name": "other"}, 'name: Invalid value: "other": field is immutable'),
        (
            {"resourceVersion": ""},
            'resourceVersion: Invalid value: "": must be specified for an update',
        ),
    ],
)
def test_identity_does_not_change(metadata: Obj, expected: str) -> None:
    assert update(STORED, **metadata) == [f"metadata.{expected}"]


def test_a_dying_object_gets_no_more_finalizers() -> None:
    dying = {**STORED, "metadata": {**STORED["metadata"], "deletionTimestamp": "t"}}
    assert update(dying, finalizers=["x.io/f"]) == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being"
        ' deleted, found new finalizers []string{"x.io/f"}'
    ]


CUSTOM = Kind(
    group="x.io",
    version="v1",
    kind="Thing",
    plural="things",
    singular="thing",
    namespaced=True,
    verbs=(),
    has_status=False,
    custom=True,
)


def test_custom_objects_have_metadata_like_all_others() -> None:
    errors = validate_create({"metadata": {"name": "A_b", "namespace": "d"}}, CUSTOM)
    assert [error.field for error in errors] == ["metadata.name"]


MANY = {f"k{number}": "v" for number in range(1001)}


def test_an_object_has_a_thousand_labels_and_not_more() -> None:
    few = dict(list(MANY.items())[:1000])
    assert said(config_map(labels=few)) == []
    expected = ["metadata.labels: Too many: 1001: must have at most 1000 items"]
    assert said(config_map(labels=MANY)) == expected


@pytest.mark.parametrize(
    ("selector", "field"),
    [
        ({"matchLabels": MANY}, "matchLabels"),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": list(MANY)[:-1]}]},
            "matchExpressions",
        ),
        (
            {"matchExpressions": [{"key": key, "operator": "Exists"} for key in MANY]},
            "matchExpressions",
        ),
    ],
)
def test_a_selector_names_a_thousand_keys_and_values_and_not_more(
    selector: Obj, field: str
) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"selector": selector},
    }
    expected = [f"spec.selector.{field}: Too many: 1001: must have at most 1000 items"]
    assert said(budget) == expected


def _spread(count: int, **term: Any) -> Obj:
    """A pod that asks for so many terms, of each sort."""
    terms = [{"topologyKey": f"k{number}", **term} for number in range(count)]
    how = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "affinity": {"podAffinity": required, "podAntiAffinity": required},
        "topologySpreadConstraints": [how | term for term in terms],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


@pytest.mark.parametrize(
    ("pod", "found", "most"),
    [
        (_spread(201), 201, 200),
        (_spread(11, labelSelector={"matchLabels": dict(list(MANY.items())[:1000])}), 11000, 10000),
    ],
)
def test_the_terms_of_a_pod_about_others_are_bounded(pod: Obj, found: int, most: int) -> None:
    fields = ("affinity.podAffinity", "affinity.podAntiAffinity", "topologySpreadConstraints")
    expected = [
        f"spec.{field}: Too many: {found}: must have at most {most} items" for field in fields
    ]
    assert sorted(said(pod)) == sorted(expected)


def test_as_many_terms_as_anybody_needs_are_taken() -> None:
    assert said(_spread(200)) == []
