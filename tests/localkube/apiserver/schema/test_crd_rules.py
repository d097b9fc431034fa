"""Texts are those of a real kube-apiserver 1.35.8 for the same CRDs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeclient.objects import Obj
from localkube.apiserver.schema.check import check
from localkube.apiserver.schema.crd_rules import crd_schema_errors, crd_warnings
from localkube.apiserver.schema.load import schema_of
from localkube.apiserver.schema.structural import compile_crd_version

ROOT = "spec.validation.openAPIV3Schema"
FIELD = f"{ROOT}.properties[a]"
KEY_NEEDED = (
    "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required "
    "property"
)


def _crd(*schemas: Any) -> Obj:
    versions = [
        {"name": f"v{index + 1}", "served": True, "schema": {"openAPIV3Schema": schema}}
        for index, schema in enumerate(schemas)
    ]
    names = {"plural": "foos", "kind": "Foo"}
    return {"spec": {"group": "ex.io", "names": names, "versions": versions}}


def _errors(*schemas: Any) -> list[str]:
    return [f"{error.field}: {error.message}" for error in crd_schema_errors(_crd(*schemas))]


def _of_field(field: Obj) -> list[str]:
    return _errors({"type": "object", "properties": {"a": field}})


STRINGS = {"type": "array", "items": {"type": "string"}}
KEYED = {"type": "object", "properties": {"k": {"type": "string"}}}


@pytest.mark.parametrize(
    "field",
    [
        {"type": "string"},
        {"type": "object", "additionalProperties": True},
        {"x-kubernetes-preserve-unknown-fields": True},
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"type": "string", "nullable": True, "default": "x", "pattern": "^x$"},
        {"type": "string", "default": None},
        {**STRINGS, "x-kubernetes-list-type": "set"},
        {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    ],
)
def test_a_structural_schema_is_accepted(field: Obj) -> None:
    assert _of_field(field) == []


@pytest.mark.parametrize(
    ("field", "error"),
    [
        ({}, ".type: Required value: must not be empty for specified object fields"),
        (
            {"type": "foo"},
            '.type: Unsupported value: "foo": supported values: '
            '"array", "boolean", "integer", "number", "object", "string"',
        ),
        ({"$ref": "#/x", "type": "string"}, ".$ref: Forbidden: $ref is not supported"),
        ({"type": "array"}, ".items: Required value: must be specified"),
        (
            {"type": "array", "items": {}},
            ".items.type: Required value: must not be empty for specified array items",
        ),
        (
            {"type": "array", "items": [{"type": "string"}]},
            ".items: Forbidden: items must be a schema object and not an array",
        ),
        (
            {**KEYED, "additionalProperties": {"type": "string"}},
            ".additionalProperties: Forbidden: "
            "additionalProperties and properties are mutual exclusive",
        ),
        (
            {**STRINGS, "uniqueItems": True},
            ".uniqueItems: Forbidden: "
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
        (
            {"type": "string", "pattern": "(?=a)"},
            '.pattern: Invalid value: "(?=a)": must be a valid regular expression, but isn\'t: '
            "error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
        ),
        (
            {"type": "string", "default": 1},
            '.default: Invalid value: "integer":  in body must be of type string: "integer"',
        ),
        (
            {"type": "integer", "default": -1, "minimum": 0},
            ".default: Invalid value: -1:  in body should be greater than or equal to 0",
        ),
        (
            {"type": "object", "default": {"x": 1}},
            '.default: Invalid value: {"x":1}: must not have unknown fields',
        ),
        (
            {**STRINGS, "x-kubernetes-list-type": "foo"},
            '.x-kubernetes-list-type: Unsupported value: "foo": '
            'supported values: "atomic", "set", "map"',
        ),
        (
            {"type": "array", "items": KEYED, "x-kubernetes-list-type": "map"},
            ".x-kubernetes-list-map-keys: Required value: "
            "must not be empty if x-kubernetes-list-type is map",
        ),
        (
            {
                "type": "array",
                "items": KEYED,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["z"],
            },
            '.x-kubernetes-list-map-keys: Invalid value: ["z"]: '
            "entries must all be names of item properties",
        ),
        (
            {
                "type": "array",
                "items": KEYED,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
            },
            f".items.properties[k].default: Required value: {KEY_NEEDED}",
        ),
        (
            {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"},
            ".items.x-kubernetes-map-type: Invalid value: null: "
            "must be atomic as item of a list with x-kubernetes-list-type=set",
        ),
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
            ".x-kubernetes-preserve-unknown-fields: Invalid value: false: "
            "must be true or undefined",
        ),
        (
            {"type": "object", "x-kubernetes-embedded-resource": True},
            ".properties: Required value: must not be empty if x-kubernetes-embedded-resource is "
            "true without x-kubernetes-preserve-unknown-fields",
        ),
        (
            {"type": "object", "anyOf": [{"type": "object"}]},
            ".anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            {"type": "string", "not": {"description": "x"}},
            ".not.description: Forbidden: must be empty to be structural",
        ),
    ],
)
def test_what_is_not_structural_is_named(field: Obj, error: str) -> None:
    assert _of_field(field) == [FIELD + error]


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ({"properties": {}}, f"{ROOT}.type: Required value: must not be empty at the root"),
        (
            {"type": "string"},
            f'{ROOT}.type: Invalid value: "string": must be object at the root',
        ),
        (
            {"type": "object", "properties": {"apiVersion": {"type": "integer"}}},
            f'{ROOT}.properties[apiVersion].type: Invalid value: "integer": must be string',
        ),
        (
            {
                "type": "object",
                "properties": {
                    "metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}
                },
            },
            f"{ROOT}.properties[metadata]: Forbidden: must not specify anything other than name "
            "and generateName, but metadata is implicitly specified",
        ),
    ],
)
def test_the_root_has_rules_of_its_own(schema: Obj, error: str) -> None:
    assert _errors(schema) == [error]


def test_versions_with_different_schemas_are_named_apart() -> None:
    good: Obj = {"type": "object"}
    bad: Obj = {"type": "object", "properties": {"a": {}}}
    assert _errors(good, bad) == [
        "spec.versions[1].schema.openAPIV3Schema.properties[a].type: "
        "Required value: must not be empty for specified object fields"
    ]


def test_a_version_needs_a_schema() -> None:
    assert _errors(None) == ["spec.versions[0].schema.openAPIV3Schema: Required value"]


@pytest.mark.parametrize(
    "field",
    [
        {"type": "array", "items": {"properties": "x"}},
        {"type": "array", "items": 5},
        {"type": "object", "additionalProperties": "x"},
        {"type": "string", "minLength": -1},
        {"type": "number", "multipleOf": 0},
    ],
)
def test_nonsense_is_refused(field: Obj) -> None:
    assert len(_of_field(field)) == 1


def test_what_is_not_evaluated_is_said() -> None:
    fields = {
        "a": {"type": "string", "x-kubernetes-validations": [{"rule": "isURL(self)"}]},
        "b": {"type": "string", "pattern": "\\PC{1000}"},
        "c": {"type": "array", "items": {"type": "string", "format": "zork"}},
        "d": {"type": "string", "format": "isbn"},
        "e": {"type": "integer", "format": "int32"},
    }
    assert crd_warnings(_crd({"type": "object", "properties": fields})) == [
        "a rule of x-kubernetes-validations is stored but not judged here: it uses isURL",
        'pattern "\\PC{1000}" is stored but not evaluated by this server',
        'unrecognized format "zork"',
        'format "isbn" is stored but not evaluated by this server',
    ]


@pytest.mark.parametrize(
    "rule",
    [
        "url(self).getScheme() in ['http', 'https']",
        "!format.dns1123Subdomain().validate(self.split('/')[0]).hasValue()",
        "ip.isCanonical(self)",
        "cidr(self).containsIP('10.0.0.1')",
        "semver(self).major() > 1",
        "self.findAll('[0-9]+').size() > 1",
    ],
)
def test_a_rule_with_functions_that_are_not_here_is_accepted(rule: str) -> None:
    field = {"type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": rule}]}
    assert not _of_field(field)
    (told,) = crd_warnings(_crd({"type": "object", "properties": {"a": field}}))
    assert told.startswith("a rule of x-kubernetes-validations is stored but not judged here")


WORDS = st.sampled_from(["object", "array", "string", "integer", "foo", "map", "set", "(", "a"])
LEAVES = st.none() | st.booleans() | st.integers(-1, 2) | WORDS | st.lists(WORDS, max_size=2)
KEYS = [
    "type",
    "items",
    "properties",
    "additionalProperties",
    "default",
    "enum",
    "minLength",
    "pattern",
    "required",
    "nullable",
    "not",
    "anyOf",
    "format",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
]
SCHEMAS = st.recursive(
    st.dictionaries(st.sampled_from(KEYS), LEAVES, max_size=3),
    lambda inner: st.dictionaries(
        st.sampled_from(KEYS),
        inner | LEAVES | st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
        max_size=4,
    ),
    max_leaves=6,
)


@given(SCHEMAS, SCHEMAS)
def test_any_schema_is_judged_and_any_value_too(schema: Obj, value: Obj) -> None:
    crd = _crd({"type": "object", "properties": {"spec": schema}})
    crd["metadata"] = {}
    if check(crd, schema_of("apiextensions.k8s.io", "v1", "CustomResourceDefinition")).error:
        return
    crd_warnings(crd)
    if crd_schema_errors(crd):
        return
    version = compile_crd_version(crd, "v1")
    obj = {"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {}, "spec": value}
    check(obj, version.schema)
    version.apply_defaults(obj)
    assert all(error.message for error in version.validate(obj))
