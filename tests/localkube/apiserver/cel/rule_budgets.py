"""Schemas with rules, some of them too dear: kube-apiserver was asked what it says to them."""

from typing import Any


def _root(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def _rules(*rules: str) -> list[dict[str, Any]]:
    return [{"rule": rule} for rule in rules]


_TEXT = {"type": "string"}
_DEAR = "self.all(a, self.all(b, a == b))"
SCHEMAS: list[dict[str, Any]] = [
    _root(a={"type": "array", "items": _TEXT, "x-kubernetes-validations": _rules(_DEAR)}),
    _root(
        a={
            "type": "array",
            "maxItems": 20,
            "items": {**_TEXT, "maxLength": 20},
            "x-kubernetes-validations": _rules(_DEAR, "self.size() > 1"),
        }
    ),
    # How often a rule runs: the items of its lists, or what fits into a request.
    _root(
        a={"type": "array", "items": {**_TEXT, "x-kubernetes-validations": _rules("self != ''")}}
    ),
    _root(
        a={
            "type": "array",
            "items": {**_TEXT, "x-kubernetes-validations": _rules("self.contains('a')")},
        }
    ),
    _root(
        a={
            "type": "array",
            "maxItems": 40,
            "items": {**_TEXT, "x-kubernetes-validations": _rules("self.contains('a')")},
        }
    ),
    _root(
        a={
            "type": "array",
            "maxItems": 30,
            "items": {**_TEXT, "x-kubernetes-validations": _rules("self.contains('a')")},
        }
    ),
    _root(
        a={
            "type": "object",
            "maxProperties": 10,
            "additionalProperties": {
                "type": "array",
                "maxItems": 10,
                "items": {**_TEXT, "x-kubernetes-validations": _rules("self.startsWith('a')")},
            },
        }
    ),
    _root(
        a={
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["name", "given"],
                "properties": {"name": _TEXT, "given": {"type": "integer", "default": 3}},
                "x-kubernetes-validations": _rules("self.name.contains('a')"),
            },
        }
    ),
    # Each is cheap enough, all together are not.
    _root(
        **{
            f"a{number}": {
                **_TEXT,
                "x-kubernetes-validations": _rules("self.matches('^(a|b|c){4}$')"),
            }
            for number in range(5)
        },
        **{
            f"b{number}": {
                **_TEXT,
                "x-kubernetes-validations": _rules(
                    f"self.matches('^(a|b|c)+(d|e|f|g|h)+{'x' * 4 * number}$')"
                ),
            }
            for number in range(50)
        },
    ),
    {
        **_root(a=_TEXT),
        "x-kubernetes-validations": [
            {
                "rule": "self.a != ''",
                "messageExpression": "self.a.replace('', self.a).replace('', 'b') + 'x'",
            }
        ],
    },
    _root(
        a={
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
            "x-kubernetes-validations": _rules("self.metadata.name.contains(self.kind)"),
        }
    ),
    _root(a={**_TEXT, "x-kubernetes-validations": _rules("self.contains(self)")}),
    _root(
        a={
            "type": "array",
            "maxItems": 0,
            "items": {**_TEXT, "x-kubernetes-validations": _rules("self.contains(self)")},
        }
    ),
    _root(
        a={
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"n": {"type": "integer"}},
                "x-kubernetes-validations": _rules(*["self.n > 1"] * 12),
            },
        }
    ),
]
