"""Objects are edited as YAML: what would change is shown first, and nobody's change is lost."""

import html
import re

import pytest
import yaml

from gpupool.console.diffs import DiffLine, TooLong, diff
from gpupool.console.yaml_view import editable_yaml, yaml_text
from kubeclient.objects import Obj
from tests.console.conftest import Office
from tests.e2e.api import call
from tests.e2e.kubectl import eventually
from tests.e2e.objects import shell, template, workload

pytestmark = pytest.mark.timeout(600)

APPS = "/apis/apps/v1/namespaces/default/deployments"


def made(office: Office, name: str) -> str:
    """A Deployment; returns the address of its editor."""
    spec = {"template": template(shell("sleep 9999"))}
    office.makes(APPS, workload("Deployment", name, 0, **spec))
    # Its controller annotates it, which is a change like that of any other.
    eventually(lambda: office.finds(f"{APPS}/{name}")["metadata"].get("annotations"), within_s=60)
    return f"deployments/default/{name}/edit"


def form_of(page: str) -> dict[str, str]:
    """What a browser would send."""
    hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page)
    text = re.search(r'<textarea name="manifest".*?>\n(.*?)</textarea>', page, re.DOTALL)
    assert text is not None
    form = {name: html.unescape(value) for name, value in hidden if name != "namespace"}
    return {**form, "manifest": html.unescape(text[1])}


def changed(form: dict[str, str], change: Obj) -> dict[str, str]:
    obj = yaml.safe_load(form["manifest"])
    obj["spec"] |= change
    return {**form, "manifest": yaml.safe_dump(obj)}


def test_changes_are_shown_as_the_server_would_make_them_and_then_saved(office: Office) -> None:
    path = made(office, "edited")
    form = form_of(office.sees(path)[1])
    assert "status" not in yaml.safe_load(form["manifest"])
    status, page, _ = office.sends(path, **changed(form, {"replicas": 3, "paused": True}))
    assert status == 200
    assert 'class="diff-line removed">-   replicas: 0' in page
    assert 'class="diff-line added">+   replicas: 3' in page
    assert office.finds(f"{APPS}/edited")["spec"]["replicas"] == 0, "nothing is done yet"
    status, _, led = office.sends(path, **{**form_of(page), "step": "save"})
    assert (status, led) == (303, "deployments/default/edited")
    spec = office.finds(f"{APPS}/edited")["spec"]
    assert (spec["replicas"], spec["paused"]) == (3, True)


def test_a_text_that_was_changed_after_the_look_is_not_saved(office: Office) -> None:
    path = made(office, "hasty")
    form = form_of(office.sees(path)[1])
    page = office.sends(path, **changed(form, {"replicas": 1}))[1]
    hasty = changed(form_of(page), {"replicas": 9})
    status, page, _ = office.sends(path, **{**hasty, "step": "save"})
    assert status == 200
    assert "+   replicas: 9" in page
    assert office.finds(f"{APPS}/hasty")["spec"]["replicas"] == 0
    assert office.sends(path, **{**form, "step": "save"})[0] == 200, "nor without any look"


def test_whoever_was_overtaken_sees_what_the_other_has_changed(office: Office) -> None:
    path = made(office, "contested")
    form = changed(form_of(office.sees(path)[1]), {"replicas": 2})
    reviewed = form_of(office.sends(path, **form)[1])
    other = office.finds(f"{APPS}/contested")
    other["spec"]["minReadySeconds"] = 7
    assert call(office.cluster, "PUT", f"{APPS}/contested", other)[0] == 200
    status, page, _ = office.sends(path, **{**reviewed, "step": "save"})
    assert status == 200
    assert "Somebody else has changed it since you opened it" in page
    assert "-   minReadySeconds: 7" in page
    assert office.finds(f"{APPS}/contested")["spec"]["replicas"] == 0
    # The second look is at the present version, and then it is a decision.
    page = office.sends(path, **form_of(page))[1]
    assert office.sends(path, **{**form_of(page), "step": "save"})[0] == 303
    spec = office.finds(f"{APPS}/contested")["spec"]
    assert (spec["replicas"], spec.get("minReadySeconds", 0)) == (2, 0)


def test_a_status_that_was_written_meanwhile_disturbs_nobody(office: Office) -> None:
    path = made(office, "busy")
    form = changed(form_of(office.sees(path)[1]), {"replicas": 2})
    reviewed = form_of(office.sends(path, **form)[1])
    other = office.finds(f"{APPS}/busy")
    other["status"] = {**other.get("status", {}), "observedGeneration": 0}
    assert call(office.cluster, "PUT", f"{APPS}/busy/status", other)[0] == 200
    assert office.sends(path, **{**reviewed, "step": "save"})[0] == 303
    assert office.finds(f"{APPS}/busy")["spec"]["replicas"] == 2


def test_mistakes_are_told_at_their_line_in_the_servers_words(office: Office) -> None:
    path = made(office, "wrong")
    form = form_of(office.sees(path)[1])

    def told(old: str, new: str) -> tuple[str, str]:
        """What is said, and at which line of the text."""
        text = form["manifest"].replace(old, new, 1)
        assert text != form["manifest"]
        status, page, _ = office.sends(path, **{**form, "manifest": text})
        assert status == 422
        said = re.search(r'id="field-manifest-error">(.*?)</p>', page, re.DOTALL)
        marked = re.search(r'data-wrong="(\d+)', page)
        assert said is not None
        assert marked is not None, said[1]
        return html.unescape(said[1]), text.split("\n")[int(marked[1]) - 1].strip()

    words, line = told("replicas: 0", "replicas: -1")
    assert "must be greater than or equal to 0" in words
    assert line == "replicas: -1"
    words, line = told("replicas: 0", "replicsa: 0")
    assert 'unknown field "spec.replicsa"' in words
    assert line == "replicsa: 0"
    words, line = told("replicas: 0", "replicas: two")
    assert "cannot unmarshal string" in words
    assert line == "replicas: two"
    words, line = told("name: wrong", "name: other")
    assert 'metadata.name: wanted "wrong", found "other"' in words
    assert line == "name: other"
    assert told("kind: Deployment", "kind: StatefulSet")[1] == "kind: StatefulSet"
    assert "not valid YAML" in told("spec:", "spec: [")[0]
    assert "found a second one" in told("spec:", "---\nspec:")[0]
    for odd in ("x", "[]", "metadata: 3", "a: " * 40, "{" * 100):
        assert office.sends(path, **{**form, "manifest": odd})[0] == 422


def test_what_changes_nothing_and_what_is_gone(office: Office) -> None:
    path = made(office, "calm")
    form = form_of(office.sees(path)[1])
    assert "Nothing would change." in office.sends(path, **form)[1]
    assert call(office.cluster, "DELETE", f"{APPS}/calm")[0] == 200
    status, page, _ = office.sends(path, **form)
    assert status in (404, 502)
    assert "calm" in page
    assert "Traceback" not in page


def test_whoever_may_only_look_gets_no_editor(office: Office) -> None:
    path = made(office, "seen")
    form = form_of(office.sees(path)[1])
    viewer = office.as_user("yaml-viewer", "view")
    page = viewer.sees("deployments/default/seen")[1]
    assert "You do not have the right: update deployments.apps --namespace default" in page
    assert viewer.sees(path)[0] == 403
    assert viewer.sends(path, **changed(form, {"replicas": 5}))[0] == 403
    assert office.finds(f"{APPS}/seen")["spec"]["replicas"] == 0


def test_a_diff_shows_what_changed_and_a_little_around_it() -> None:
    old = "\n".join(f"line {n}" for n in range(20))
    new = old.replace("line 10", "line ten")
    assert diff(old, old) == ()
    signs = "".join(line.sign for line in diff(old, new))
    assert signs == "…   -+   "
    assert DiffLine("+", "line ten") in diff(old, new)
    assert [line.sign for line in diff("", "a")] == ["+"]
    with pytest.raises(TooLong):
        diff("x\n" * 30_000, "y\n")


def test_a_diff_takes_no_notice_of_what_is_the_same_around_it() -> None:
    same = [f"line {n}" for n in range(50_000)]
    lines = diff("\n".join([*same, "a", *same]), "\n".join([*same, "b", *same]))
    assert [line.sign for line in lines] == list("…   -+   ")
    assert [line.text for line in lines[1:4]] == same[-3:]
    assert [line.text for line in lines[-3:]] == same[:3]


def test_two_texts_that_are_slow_to_compare_are_not_compared() -> None:
    """Every match splits off one line, and looks at all of the rest again."""
    old = [line for n in range(5_000) for line in (f"x{n}", f"f{n % 49}")]
    new = [f"f{n}" for n in range(49) for _ in range(99)]
    new += [line for n in range(2_500) for line in (f"x{n}", f"v{n}")]
    with pytest.raises(TooLong):  # with 6,000 lines each, it took 7.5 s
        diff("\n".join(old), "\n".join(new))


def test_texts_survive_the_way_through_the_editor() -> None:
    data = {"ini": "[a]\nb = 1\n", "odd": "a \n b", "yes": "on", "no": "0o7", "empty": "", "n": "1"}
    text = editable_yaml({"metadata": {"name": "x", "uid": "u"}, "data": data, "status": {"a": 1}})
    assert yaml.safe_load(text) == {"metadata": {"name": "x"}, "data": data}
    assert yaml_text({"ini": "[a]\nb = 1\n"}) == "ini: |\n  [a]\n  b = 1\n"
