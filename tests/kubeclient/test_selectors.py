import re
import time
from collections.abc import Callable, Mapping
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeclient.selectors import (
    EVERYTHING,
    MAX_BYTES,
    NOTHING,
    FieldRequirement,
    LabelSelector,
    Operator,
    Requirement,
    SelectorError,
    from_object,
    parse_field_selector,
    parse_label_selector,
)

KEYS = st.sampled_from(["a", "b", "x.io/c", "in", "notin"])
VALUES = st.sampled_from(["", "a", "1", "2", "-3", "in"])
LABELS = st.dictionaries(KEYS, VALUES)


def sets(operator: Operator) -> st.SearchStrategy[Requirement]:
    values = st.sets(st.sampled_from(["", "a", "1", "in"]), min_size=1, max_size=3)
    return st.builds(lambda k, v: Requirement(k, operator, tuple(sorted(v))), KEYS, values)


def singles(operator: Operator, values: list[str]) -> st.SearchStrategy[Requirement]:
    value = st.sampled_from(values)
    return st.builds(lambda k, v: Requirement(k, operator, (v,)), KEYS, value)


REQUIREMENTS = st.one_of(
    *(sets(o) for o in (Operator.IN, Operator.NOT_IN)),
    *(
        singles(o, ["", "a", "1", "notin"])
        for o in (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS)
    ),
    *(singles(o, ["0", "1", "2"]) for o in (Operator.GREATER, Operator.LESS)),
    *(
        KEYS.map(partial(lambda o, k: Requirement(k, o), o))
        for o in (Operator.EXISTS, Operator.ABSENT)
    ),
)
SELECTORS = st.lists(REQUIREMENTS, max_size=4).map(
    lambda found: LabelSelector(tuple(sorted(found, key=lambda r: r.key)))
)


def naive(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Kubernetes' documentation, word by word."""
    has = requirement.key in labels
    value = labels.get(requirement.key, "?")
    number = int(value) if re.fullmatch(r"-?\d+", value) else None
    first = requirement.values[0] if requirement.values else ""
    table: dict[Operator, Callable[[], bool]] = {
        Operator.IN: lambda: has and value in requirement.values,
        Operator.NOT_IN: lambda: not has or value not in requirement.values,
        Operator.EQUALS: lambda: has and value == first,
        Operator.DOUBLE_EQUALS: lambda: has and value == first,
        Operator.NOT_EQUALS: lambda: not has or value != first,
        Operator.EXISTS: lambda: has,
        Operator.ABSENT: lambda: not has,
        Operator.GREATER: lambda: number is not None and number > int(first),
        Operator.LESS: lambda: number is not None and number < int(first),
    }
    return table[requirement.operator]()


@given(SELECTORS)
def test_the_text_of_a_selector_parses_to_the_same_selector(selector: LabelSelector) -> None:
    assert parse_label_selector(selector.text) == selector


@given(SELECTORS, LABELS)
def test_matching_agrees_with_the_documented_rules(
    selector: LabelSelector, labels: dict[str, str]
) -> None:
    assert selector.matches(labels) == all(naive(r, labels) for r in selector.requirements)


@given(st.lists(REQUIREMENTS, min_size=17, max_size=30), LABELS)
def test_a_wide_selector_follows_the_same_rules(
    requirements: list[Requirement], labels: dict[str, str]
) -> None:
    selector = LabelSelector(tuple(requirements))
    assert selector.matches(labels) == all(naive(r, labels) for r in requirements)


# Without numbers, and such as most labels meet: others are refused by one of seventeen for sure.
_MEANT = st.sampled_from(
    [
        Requirement("a", Operator.IN, ("", "1", "a", "in")),
        Requirement("a", Operator.NOT_IN, ("2",)),
        Requirement("a", Operator.EXISTS),
        Requirement("b", Operator.NOT_EQUALS, ("a",)),
        Requirement("b", Operator.ABSENT),
        Requirement("in", Operator.NOT_IN, ("1", "2")),
    ]
)


@given(st.lists(_MEANT, min_size=17, max_size=20), LABELS)
def test_a_wide_selector_matches_what_each_requirement_does(
    requirements: list[Requirement], labels: dict[str, str]
) -> None:
    selector = LabelSelector(tuple(requirements))
    assert selector.matches(labels) == all(naive(r, labels) for r in requirements)


def test_a_match_looks_at_the_labels_and_not_at_all_that_a_selector_names() -> None:
    """Also where nothing of it is wrong, so that all of it would have to be asked."""

    class Counted(dict[str, str]):
        looks = 0

        def get(self, *_: object) -> None:  # type: ignore[override]
            self.looks += 1

    requirements = [Requirement(f"k{n}", Operator.NOT_IN, ("v",)) for n in range(5_000)]
    labels = Counted(a="b")
    assert LabelSelector(tuple(requirements)).matches(labels)
    assert labels.looks < 10


@given(st.text(alphabet="ab1 ,()=!<>in", max_size=30))
def test_any_text_is_a_selector_or_a_selector_error(text: str) -> None:
    try:
        selector = parse_label_selector(text)
    except SelectorError:
        return
    assert parse_label_selector(selector.text) == selector


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        (" z = 1 , a ", "a,z=1"),
        ("x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z notin ()"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("a==b", "a==b"),
        ("a=", "a="),
        ("a!=", "a!="),
        ("!a,b>1,c<2", "!a,b>1,c<2"),
        ("a in (c,b,c)", "a in (b,c)"),
    ],
)
def test_selectors_have_one_canonical_text(text: str, canonical: str) -> None:
    assert parse_label_selector(text).text == canonical


NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a==b==c", "found '==', expected: ',' or 'end of string'"),
        ("a=b,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("(a)", "found '(', expected: !, identifier, or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b,!", "unable to parse requirement: found '!', expected: ',', or identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        (
            "a>x",
            'unable to parse requirement: values[0]: Invalid value: "x": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        ("-a", f'unable to parse requirement: <nil>: Invalid value: "-a": {NAME_RULE}'),
        (
            "/",
            'unable to parse requirement: <nil>: Invalid value: "/": prefix part must be '
            f"non-empty; name part must be non-empty; {NAME_RULE}",
        ),
    ],
)
def test_a_bad_selector_is_refused_in_kubernetes_words(text: str, complaint: str) -> None:
    with pytest.raises(SelectorError) as error:
        parse_label_selector(text)
    assert str(error.value) == complaint


def test_a_long_selector_is_refused_and_a_full_one_is_quick() -> None:
    with pytest.raises(SelectorError):
        parse_label_selector("a" * (MAX_BYTES + 1))
    before = time.process_time()
    for text in ("(" * MAX_BYTES, "a." * (MAX_BYTES // 2), "a=b," * (MAX_BYTES // 4)):
        with pytest.raises(SelectorError):
            parse_label_selector(text)
    assert time.process_time() - before < 0.5


def test_an_absent_object_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert from_object(None) == NOTHING
    assert not NOTHING.matches({})
    assert from_object({}) == EVERYTHING
    assert EVERYTHING.everything
    assert EVERYTHING.matches({})


def test_match_labels_and_expressions_must_all_hold() -> None:
    selector = from_object(
        {
            "matchLabels": {"b": "1"},
            "matchExpressions": [
                {"key": "a", "operator": "In", "values": ["y", "x"]},
                {"key": "c", "operator": "DoesNotExist"},
                {"key": "d", "operator": "Exists"},
                {"key": "e", "operator": "NotIn", "values": ["z"]},
            ],
        }
    )
    assert selector.text == "a in (x,y),b=1,!c,d,e notin (z)"
    assert selector.matches({"a": "x", "b": "1", "d": ""})
    assert not selector.matches({"a": "x", "b": "1", "d": "", "c": ""})


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ({"key": "a", "operator": "Gt"}, '"Gt" is not a valid label selector operator'),
        (
            {"key": "a", "operator": "In"},
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            {"key": "a", "operator": "Exists", "values": ["x"]},
            'values: Invalid value: ["x"]: values set must be empty for exists and does not exist',
        ),
    ],
)
def test_a_bad_expression_is_a_selector_error(
    expression: dict[str, object], complaint: str
) -> None:
    with pytest.raises(SelectorError) as error:
        from_object({"matchExpressions": [expression]})
    assert str(error.value) == complaint


FIELD_VALUES = st.text(alphabet="a,=\\!", max_size=6)
FIELDS = st.builds(FieldRequirement, st.sampled_from(["a", "b.c"]), st.booleans(), FIELD_VALUES)


@given(st.lists(FIELDS, max_size=3))
def test_field_selectors_survive_their_text(fields: list[FieldRequirement]) -> None:
    text = ",".join(f.text for f in fields)
    assert sorted(parse_field_selector(text), key=lambda f: f.text) == sorted(
        fields, key=lambda f: f.text
    )


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", ()),
        (",,", ()),
        ("a==b,c!=d", (FieldRequirement("a", True, "b"), FieldRequirement("c", False, "d"))),
        ("involvedObject.namespace=", (FieldRequirement("involvedObject.namespace", True, ""),)),
        ("a!b=c", (FieldRequirement("a!b", True, "c"),)),
    ],
)
def test_field_selectors_are_paths_and_values(
    text: str, fields: tuple[FieldRequirement, ...]
) -> None:
    assert parse_field_selector(text) == fields


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=1,b", "invalid selector: 'a=1,b'; can't understand 'b'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ("a=\\x", "invalid field selector: invalid escape sequence: \\x"),
        ("a=\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_a_bad_field_selector_is_refused_in_kubernetes_words(text: str, complaint: str) -> None:
    with pytest.raises(SelectorError) as error:
        parse_field_selector(text)
    assert str(error.value) == complaint
