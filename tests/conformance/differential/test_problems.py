"""A difference that is not listed fails, and so does a listed one that is gone."""

from tests.conformance.differential.__main__ import problems
from tests.conformance.differential.both import Answers

ALIKE = Answers("kubectl get a", "same", "same")
DIFFERENT = Answers("kubectl get b", "one\ntwo", "one\nthree")


def test_nothing_is_wrong_with_what_is_expected() -> None:
    assert problems([ALIKE, DIFFERENT], {DIFFERENT.step}) == []


def test_a_difference_that_is_not_listed_is_shown_with_both_answers() -> None:
    (found,) = problems([ALIKE, DIFFERENT], ())
    assert found.startswith("$ kubectl get b\n")
    assert "    -two\n    +three" in found


def test_a_listed_difference_that_is_gone_is_told() -> None:
    assert problems([ALIKE], {ALIKE.step}) == ["no longer different: $ kubectl get a"]
