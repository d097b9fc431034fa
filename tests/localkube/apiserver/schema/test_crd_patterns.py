"""What Go's regexp says to each of these is what is written here, to the letter."""

import time

import pytest

from localkube.apiserver.schema.crd_values import Values, searchable
from localkube.apiserver.schema.node import Schema, Type
from localkube.apiserver.schema.patterns import BadPattern, translated


def _matches(pattern: str, text: str) -> bool:
    values = Values({"type": "string", "pattern": pattern}, Schema(type=Type.STRING))
    return not values.errors(text)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        # As CRDs of common operators have them.
        ("^(?i)(abort|warn)?$", "WARN", "warning"),
        ("^(?i)[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "Node-1", "-1"),
        (r"^\PC*$", "printed", "bell\x07"),
        # Flags hold until their group ends, in every alternative.
        ("^(?:a(?i)b|c)d$", "Cd", "CD"),
        ("^(?:x(?i)y|z)$", "xY", "XY"),
        ("^(?i)a(?-i)b$", "Ab", "AB"),
        ("^(?s).$", "\n", "ab"),
        ("^(?s:.).$", "\na", "a\n"),
        ("(?m)^b$", "a\nb", "ab"),
        (r"(?m)\Ab", "b", "a\nb"),
        # Characters and classes
        (r"\Aa\z", "a", "a\n"),
        (r"^\Qa.b\E$", "a.b", "axb"),
        (r"^\x{e9}\x41\07\a$", "éA\x07\x07", "é"),
        ("^[[:alpha:]]+$", "abc", "ab1"),
        ("^[[:^digit:][:punct:]]+$", "a-é", "1"),
        (r"^[\D5]$", "5", "6"),
        (r"^[\d-z]+$", "1-z", "y"),
        ("^[]a]+$", "]a", "b"),
        ("^[^]a]$", "\n", "]"),
        ("^[a&&b]+$", "&a", "c"),
        (r"^\s$", " ", "\u00a0"),
        (r"^\w$", "_", "é"),
        (r"^\p{^Lu}\pN$", "a1", "A1"),
        # Folded before they are negated
        (r"^(?i)[\W5]$", "5", "k"),
        ("^(?i)[[:^lower:]]$", "1", "A"),
        (r"^(?i)\w\W$", "\u017f-", "a\u212a"),
        # What is only a character
        ("^a{,3}$", "a{,3}", "aa"),
        ("^{]}$", "{]}", "{"),
        # Repetitions, of anything
        ("^*a", "a", "b"),
        ("^(?P<n>ab){2}(?<m>c)??$", "ababc", "ab"),
        ("^(?U)a+b{2,}$", "aabb", "ab"),
        ("^a{2}(?i)*$", "aaaa", "aaa"),
    ],
)
def test_a_pattern_is_understood_as_by_go(pattern: str, matching: str, other: str) -> None:
    assert _matches(pattern, matching)
    assert not _matches(pattern, other)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?>a)", "invalid or unsupported Perl syntax: `(?>`"),
        ("(?x) a", "invalid or unsupported Perl syntax: `(?x`"),
        ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
        ("(?P<a-b>x)", "invalid named capture: `(?P<a-b>`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        (r"\x{zz}", r"invalid escape sequence: `\x{z`"),
        (r"[a-\d]", r"invalid escape sequence: `\d`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        ("[[:Foo 1:]]", "invalid character class range: `[:Foo 1:]`"),
        ("[[:]a[:]", "invalid character class range: `[:]a[:]`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2}??", "invalid nested repetition operator: `{2}??`"),
        ("(|*)", "missing argument to repetition operator: `*`"),
        ("a{1,1001}", "invalid repeat count: `{1,1001}`"),
        ("a{3,2}", "invalid repeat count: `{3,2}`"),
        ("(a{40}){40}", "invalid repeat count: `{40}`"),
        (f"a{{{'9' * 5000}}}", f"invalid repeat count: `{{{'9' * 5000}}}`"),
    ],
)
def test_a_mistake_is_told_in_the_words_of_go(pattern: str, why: str) -> None:
    with pytest.raises(BadPattern) as raised:
        translated(pattern)
    assert str(raised.value) == why


def test_an_error_shows_the_pattern_as_it_was_written() -> None:
    values = Values({"type": "string", "pattern": "^(?i)a$"}, Schema(type=Type.STRING))
    assert [error.message for error in values.errors("b")] == [
        "Invalid value: \"b\":  in body should match '^(?i)a$'"
    ]


def test_a_pattern_that_would_fill_the_memory_is_not_evaluated() -> None:
    assert translated(r"\PC{1000}")
    assert searchable(r"\PC{1000}") == ""


@pytest.mark.parametrize(
    "part", [r"\Q\E", r"\Qa\E", "(?i)*", "(?i)a", "()", "[a]", "[[:a]", r"\pL"]
)
def test_a_long_pattern_takes_as_long_as_many_short_ones(part: str) -> None:
    def seconds(times: int) -> float:
        began = time.process_time()
        translated("a" + part * times)
        return time.process_time() - began

    assert seconds(80_000) < 40 * seconds(4_000) + 0.2
