r"""`matches` speaks RE2's language, as in Kubernetes: `\w`, `\d`, `\s` and `\b` know only ASCII."""

import re

import pytest

from localkube.apiserver.cel.errors import OutOfBudget
from localkube.apiserver.cel.program import compiled

TEXTS = [
    "a",
    "é",
    "1",
    "٣",
    " ",
    "\u00a0",
    "_",
    "-",
    "[",
    "]",
    "&",
    "~",
    "<",
    "a b",
    "éa",
    "a.b",
    "",
]
# In these, Python's ASCII mode and RE2 agree, but for \v, which is in no text.
PATTERNS = [
    *(r"^\w$", r"^\W$", r"^\d$", r"^\D$", r"^\s$", r"^\S$", r"\ba", r"\Ba", r"\bb\b"),
    *(r"^[\w-]+$", r"^[^\w]$", r"^[\d\s]$", r"^[\W]$", r"^[^\W]$", r"^[a\D]$"),
    *(r"[\[]", r"[]]", r"[^]]", r"\<", r"^[\<]$", r"^[\[\]]$"),
    *(r"^.{1,2}$", r"^(a|\w)( b)?$", r"^a{1}\.b$", r"^(?:\w\W){0,1}\w$"),
]


def found(text: str, pattern: str) -> bool:
    program = compiled("text.matches(pattern)", {"text": "string", "pattern": "string"})
    value: bool = program.evaluate({"text": text, "pattern": pattern})[0]
    return value


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_finds_what_it_finds_in_ascii(pattern: str) -> None:
    for text in TEXTS:
        assert found(text, pattern) is bool(re.search(pattern, text, re.ASCII)), text


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^\Qa.b\E$", "a.b"),
        (r"^[[:alpha:]]\pL$", "aé"),
        (r"^\p{Greek}+$", "αβγ"),
        (r"^[^\PL]$", "é"),
        (r"^[[]$", "["),
        (r"^[&&~~]$", "&"),
        (r"^\x{e9}$", "é"),
        (r"(?i)^A$", "a"),
    ],
)
def test_what_only_re2_knows_is_found_too(pattern: str, text: str) -> None:
    assert found(text, pattern)
    assert not found("+", pattern)


@pytest.mark.parametrize(
    "pattern", [r"\pL{200}", r"(?:\PL{20}){10}", r"(?:(?:a{99}){99}){99}", r"[\pL]" * 100]
)
def test_a_pattern_that_takes_long_to_compile_is_paid_for(pattern: str) -> None:
    program = compiled("text.matches(pattern)", {"text": "string", "pattern": "string"})
    with pytest.raises(OutOfBudget):
        program.evaluate({"text": "a", "pattern": pattern}, 50_000)


def test_the_name_of_a_host_is_cheap() -> None:
    label = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
    pattern = rf"^{label}(\.{label})*$"
    program = compiled("text.matches(pattern)", {"text": "string", "pattern": "string"})
    assert program.evaluate({"text": "node-1.example.com", "pattern": pattern}, 500)[0] is True
