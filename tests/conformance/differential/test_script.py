"""Scripts are read as they are written."""

import pytest

from tests.conformance.differential.script import BadScript, load_all, parse

TEXT = """\
## A comment.
$ kubectl apply -f -
kind: ConfigMap
data: {in: $NAMESPACE}

$ KUBE_EDITOR='sed -i s/a/b/' kubectl edit cm a
$ until 'is ready' kubectl get x
$ start a-pod kubectl get pods -w
$ ends DELETED
"""


def test_a_step_has_its_words_and_its_standard_input() -> None:
    first = parse("s", TEXT).steps[0]
    assert first.arguments == ("apply", "-f", "-")
    assert first.stdin == "kind: ConfigMap\ndata: {in: c-s}\n"


def test_variables_conditions_and_watches_are_read() -> None:
    script = parse("s", TEXT)
    _, edit, until, start, ends = script.steps
    assert dict(edit.env) == {"KUBE_EDITOR": "sed -i s/a/b/"}
    assert (until.until, until.arguments) == ("is ready", ("get", "x"))
    assert (start.verb, start.until) == ("start", "a-pod")
    assert start.arguments == ("get", "pods", "-w")
    assert (ends.verb, ends.arguments) == ("ends", ("DELETED",))
    assert script.compared[-1] == "ends DELETED"
    assert len(script.compared) == 4


@pytest.mark.parametrize(
    "text", ["words\n$ kubectl version", "$ helm list", "$ kubectl version\n$ kubectl version"]
)
def test_a_wrong_script_is_refused(text: str) -> None:
    with pytest.raises(BadScript):
        parse("s", text)


def test_all_scripts_can_be_read() -> None:
    assert all(script.compared for script in load_all())
