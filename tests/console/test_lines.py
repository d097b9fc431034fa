"""Labels and taints as lines of a form."""

import pytest

from gpupool.console.parts.form import Invalid
from gpupool.console.parts.lines import labels_of, lines_of, tags_of, taint_lines, taints_of
from gpupool.console.words import ENGLISH, translator

T = translator(ENGLISH)


def test_labels_and_taints_come_back_as_they_were_shown() -> None:
    labels = {"cgpu": "true", "example.com/a_b.c": "", "x": "A-1"}
    assert labels_of(T, "f", lines_of(labels)) == labels
    taints = [
        {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoExecute"},
    ]
    assert taints_of(T, "f", taint_lines(taints)) == taints


def test_empty_lines_and_spaces_do_not_matter() -> None:
    assert labels_of(T, "f", "\n  a=b \r\n\n") == {"a": "b"}
    assert tags_of(T, "f", " team = ai lab \n") == {"team": "ai lab"}


@pytest.mark.parametrize("line", ["a", "=b", "a b=c", "a=b c", "-a=b", f"{'a' * 64}=b", "A/a=b"])
def test_a_line_that_is_no_label_is_named(line: str) -> None:
    with pytest.raises(Invalid) as refused:
        labels_of(T, "labels", f"good=1\n{line}")
    assert refused.value.errors == {"labels": f"line 2: wanted key=value, found: {line}"}


@pytest.mark.parametrize("line", ["a", "a=b", "a:Never", ":NoSchedule", "a=b:NoSchedule:x"])
def test_a_line_that_is_no_taint_is_named(line: str) -> None:
    with pytest.raises(Invalid, match="line 1: wanted key=value:NoSchedule"):
        taints_of(T, "taints", line)


def test_a_taint_that_is_there_twice_is_refused() -> None:
    with pytest.raises(Invalid, match="a:NoSchedule is there twice"):
        taints_of(T, "taints", "a=1:NoSchedule\na=2:NoSchedule")
