"""The form and its YAML are two views of one thing: what is changed in one comes into the other."""

import copy
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpupool.console.form_join import Joined, join
from gpupool.console.parts.form import Field, FieldKind, Invalid
from gpupool.console.three_way import differences, joined
from gpupool.console.words import ENGLISH, translator
from kubeclient.objects import Obj
from tests.console.test_create_form import FORM

T = translator(ENGLISH)
CHOICES = {
    "kind": ("Deployment", "StatefulSet", "Job"),
    "gpu": ("share", "whole", "none"),
    "pool": ("", "cgpu"),
    "service": ("", "LoadBalancer", "NodePort", "ClusterIP"),
}
FIELDS = (
    *(
        Field(name, name, FieldKind.CHOICE, choices=tuple((each, each) for each in offered))
        for name, offered in CHOICES.items()
    ),
    *(Field(name, name, is_required=True) for name in ("name", "namespace", "image")),
    Field("replicas", "replicas", FieldKind.NUMBER, most=100),
    Field("units", "units", FieldKind.RANGE, least=1, most=32),
    Field("cards", "cards", FieldKind.NUMBER, least=1, most=64),
    *(Field(name, name, FieldKind.LINES) for name in ("ports", "env", "command")),
)


def shown(**said: str) -> Joined:
    """The form as it is opened and filled in."""
    return join(T, FIELDS, {**FORM, "manifest": "", "seen": "", **said})


def after(before: Joined, text: str | None = None, **said: str) -> Joined:
    """Somebody has changed the text, or fields, or both."""
    now = before.text if text is None else text
    return join(T, FIELDS, {**before.values, "manifest": now, "seen": before.text, **said})


def loaded(found: Joined) -> list[Obj]:
    return list(yaml.safe_load_all(found.text))


def container(found: Joined) -> Obj:
    first: Obj = loaded(found)[0]["spec"]["template"]["spec"]["containers"][0]
    return first


def test_what_is_typed_as_yaml_comes_into_the_fields() -> None:
    before = shown(ports="80", service="ClusterIP", env="A=1", command="sleep 9")
    text = (
        before.text.replace("gpu-mem: 3", "gpu-mem: 7")
        .replace("image: busybox", "image: mine:v2  # the new one")
        .replace("replicas: 1", "replicas: 4")
        .replace("type: ClusterIP", "type: NodePort")
        .replace("value: '1'", "value: b=c")
        .replace("- sleep", "- echo\n        - two words")
    )
    now = after(before, text)
    said = {name: now.values[name] for name in ("units", "image", "replicas", "service", "env")}
    assert said == {
        "units": "7",
        "image": "mine:v2",
        "replicas": "4",
        "service": "NodePort",
        "env": "A=b=c",
    }
    assert now.values["command"] == "echo 'two words' 9"
    assert now.text == text, "comments stay as long as the form changes nothing"
    assert now.kept == ()


def test_what_the_form_has_no_field_for_is_kept_and_said() -> None:
    before = shown(env="A=1")
    text = before.text.replace(
        "image: busybox", "image: busybox\n        workingDir: /data\n        args: [x]"
    )
    text += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n"
    now = after(before, text)
    place = "spec.template.spec.containers[0]"
    assert now.kept == (f"{place}.workingDir", f"{place}.args", "ConfigMap")
    changed = after(now, image="other", env="A=2\nB=3")
    assert container(changed)["workingDir"] == "/data"
    assert container(changed)["args"] == ["x"]
    assert container(changed)["image"] == "other"
    assert [each["value"] for each in container(changed)["env"]] == ["2", "3"]
    assert loaded(changed)[-1]["kind"] == "ConfigMap"
    assert changed.kept == now.kept


def test_variables_from_elsewhere_and_other_containers_stay() -> None:
    before = shown(env="A=1")
    objects = loaded(before)
    pod = objects[0]["spec"]["template"]["spec"]
    pod["containers"][0]["env"].append({"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}})
    pod["containers"][0]["name"] = "web"
    pod["containers"].append({"name": "side", "image": "proxy"})
    now = after(before, yaml.safe_dump_all(objects))
    assert now.values["env"] == "A=1"
    changed = after(now, env="C=3", image="new")
    names = [each["name"] for each in container(changed)["env"]]
    assert sorted(names) == ["B", "C"]
    assert container(changed)["name"] == "web"
    sides = loaded(changed)[0]["spec"]["template"]["spec"]["containers"]
    assert [each["image"] for each in sides] == ["new", "proxy"]


def test_both_at_once_are_joined() -> None:
    before = shown()
    now = after(before, before.text.replace("replicas: 1", "replicas: 5"), image="other")
    assert container(now)["image"] == "other"
    assert loaded(now)[0]["spec"]["replicas"] == 5
    assert (now.values["image"], now.values["replicas"]) == ("other", "5")


def test_a_line_that_was_deleted_does_not_come_back() -> None:
    before = shown(kind="StatefulSet")
    now = after(before, before.text.replace("  serviceName: formed\n", ""))
    changed = after(now, image="other")
    assert "serviceName" not in loaded(changed)[0]["spec"]


def test_what_is_half_typed_in_a_field_stays() -> None:
    before = shown(ports="80\n81", service="ClusterIP")
    assert before.values["ports"] == "80\n81", "although the YAML has names for them"
    assert after(before, replicas="2").values["ports"] == "80\n81"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("kind: Deployment", "kind: DaemonSet", "Wanted a Deployment, a StatefulSet or a Job."),
        ("kind: Deployment", "kind: [", "line "),
        ("replicas: 1", "replicas: 1000", "The form cannot show this: replicas."),
        ("replicas: 1", "replicas: many", "The form cannot show this: replicas."),
        ("gpu-mem: 3", "gpu-mem: 33", "The form cannot show this: units."),
        ("image: busybox", "image: {a: b}", "The form cannot show this: image."),
        ("image: busybox", "ports: [{containerPort: 99999}]", "The form cannot show this"),
        ("  template:", "  templat:", "The form cannot show this: image."),
        ("metadata:", "metadata: [1]\nm:", "The form cannot show this"),
    ],
)
def test_what_cannot_be_shown_is_said(old: str, new: str, words: str) -> None:
    before = shown()
    with pytest.raises(Invalid) as invalid:
        after(before, before.text.replace(old, new, 1))
    assert words in invalid.value.errors["manifest"]


@pytest.mark.parametrize("text", ["", "- 1\n- 2\n", "null", "x", "kind: List\nitems: [1, null]\n"])
def test_a_text_without_a_workload_is_no_crash(text: str) -> None:
    before = shown()
    if not text:
        assert after(before, text).text == before.text, "an empty editor begins anew"
    else:
        with pytest.raises(Invalid):
            after(before, text)


def test_a_pool_that_the_form_does_not_offer_is_kept() -> None:
    before = shown()
    objects = loaded(before)
    objects[0]["spec"]["template"]["spec"]["nodeSelector"] = {"node.gpupool.io/pool": "plain"}
    now = after(before, yaml.safe_dump_all(objects))
    assert now.values["pool"] == ""
    assert now.kept == ("spec.template.spec.nodeSelector",)
    assert "pool: plain" in after(now, replicas="2").text


values = st.recursive(
    st.integers(0, 3) | st.sampled_from(["a", "b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "x", "containers"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(values, values)
def test_one_change_alone_is_taken_as_it_is(base: Any, other: Any) -> None:
    assert joined(base, other, base) == other
    assert joined(base, base, other) == other


@given(values, values, values)
def test_joining_changes_none_of_the_three(base: Any, text: Any, form: Any) -> None:
    before = copy.deepcopy((base, text, form))
    joined(base, text, form)
    list(differences(base, text))
    assert before == (base, text, form)


forms = st.fixed_dictionaries(
    {
        "image": st.sampled_from(["a", "b:1"]),
        "replicas": st.integers(0, 9).map(str),
        "kind": st.sampled_from(CHOICES["kind"]),
        "gpu": st.sampled_from(CHOICES["gpu"]),
        "units": st.integers(1, 9).map(str),
        "cards": st.integers(1, 9).map(str),
        "pool": st.sampled_from(CHOICES["pool"]),
        "service": st.sampled_from(CHOICES["service"]),
        "ports": st.sampled_from(["80", "80:90", "53/UDP\n80 web", "1\n2\n3"]),
        "env": st.sampled_from(["", "A=1", "A=x=y\nB=", "é=ü"]),
        "command": st.sampled_from(["", "a", "a 'b c' \"d\"", "sh -c 'x; y'"]),
    }
)


@given(forms, forms)
def test_forms_and_texts_say_the_same_after_any_change(
    first: dict[str, str], then: dict[str, str]
) -> None:
    """By the form, and by the text that another form would have made: the same objects."""
    by_form = after(shown(**first), **then)
    by_text = after(shown(**first), shown(**then).text)
    assert by_form.manifest == by_text.manifest == shown(**then).manifest
    assert by_text.kept == ()


@pytest.mark.parametrize(
    "half",
    [
        "kind: [Deployment]\n",
        "kind: {Deployment: 1}\n",
        "kind: Deployment\nmetadata:\nspec:\n",
        "kind: Deployment\nmetadata: web\nspec: 5\n",
        f"kind: Deployment\nmetadata: {{name: 0x{'f' * 5000}}}\n",
    ],
)
@pytest.mark.parametrize("image", ["nginx", "other"])
def test_half_a_text_is_refused_in_words(half: str, image: str) -> None:
    before = shown(image="nginx")
    with pytest.raises(Invalid):
        after(before, f"apiVersion: apps/v1\n{half}", image=image)


def test_what_is_typed_before_anything_was_shown_is_kept() -> None:
    text = shown().text.replace("image: busybox", "image: mine")
    now = shown(manifest=text)
    assert (now.text, now.values["image"]) == (text, "mine")
