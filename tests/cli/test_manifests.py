"""Manifests as commands read them: whatever a file says, the answer is a message."""

from collections.abc import AsyncGenerator
from pathlib import Path

import click
import orjson
import pytest

from gpupool.cli.manifests import all_completed, read_pod_templates
from gpupool.contract.manifests import PodTemplate
from kubeclient.client import Headers, Kube, Query
from kubeclient.errors import Refused


def test_a_number_that_json_cannot_have_is_sent_as_text(tmp_path: Path) -> None:
    """The API server says what it wants there."""
    file = tmp_path / "pod.yaml"
    file.write_text(f"kind: Pod\nspec: {{containers: [], priority: {'9' * 30}}}\n")
    (template,) = read_pod_templates(file, "default")
    assert template.pod["spec"]["priority"] == "9" * 30


@pytest.mark.parametrize(("found", "wanted"), [("pod", "Pod"), ("statefulset", "StatefulSet")])
def test_a_kind_in_small_letters_is_named_as_it_should_be(
    found: str, wanted: str, tmp_path: Path
) -> None:
    file = tmp_path / "old.yaml"
    spec = "{containers: []}"
    file.write_text(f"kind: {found}\nspec: {{containers: [], template: {{spec: {spec}}}}}\n")
    with pytest.raises(click.ClickException) as refusal:
        read_pod_templates(file, "default")
    assert refusal.value.message == (
        f"{file}: wanted kind: {wanted}, found {found}. "
        "The API server knows kinds only with their capital letters."
    )


@pytest.mark.parametrize(
    ("kind", "spec", "found"),
    [
        ("Deployment", "replicas: -3", '"-3"'),
        ("Deployment", "replicas: true", '"True"'),
        ("StatefulSet", "replicas: many", '"many"'),
        ("Job", "parallelism: 1.5", '"1.5"'),
    ],
)
def test_a_number_of_pods_that_no_api_server_takes_is_refused(
    kind: str, spec: str, found: str, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.yaml"
    template = "template: {spec: {containers: []}}"
    file.write_text(f"kind: {kind}\nmetadata: {{name: a}}\nspec: {{{spec}, {template}}}\n")
    with pytest.raises(click.ClickException) as refusal:
        read_pod_templates(file, "default")
    field = spec.partition(":")[0]
    assert refusal.value.message == (
        f"{file}: {kind} a: {field}: wanted a whole number from 0 on, found {found}."
    )


@pytest.mark.parametrize("spec", ["", "replicas: null,", "replicas: 0,"])
def test_a_number_of_pods_may_be_missing_or_0(spec: str, tmp_path: Path) -> None:
    file = tmp_path / "right.yaml"
    file.write_text(f"kind: Deployment\nspec: {{{spec} template: {{spec: {{containers: []}}}}}}\n")
    (template,) = read_pod_templates(file, "default")
    assert template.copies == (0 if "0" in spec else 1)


class _Refusing:
    """An API server that answers everything with this."""

    def __init__(self, message: str) -> None:
        self.status = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": message}

    async def call(
        self, method: str, path: str, *, query: Query, headers: Headers, body: bytes
    ) -> tuple[int, bytes]:
        return 403, orjson.dumps(self.status)

    def stream(self, path: str, *, query: Query, headers: Headers) -> AsyncGenerator[bytes, None]:
        raise AssertionError(path)


def _template() -> PodTemplate:
    return PodTemplate("Job", {"metadata": {"name": "p", "namespace": "team"}, "spec": {}})


@pytest.mark.parametrize("made_up", ["p-", "p-x7k2q"])
async def test_a_pod_that_a_quota_forbids_is_no_matter_of_rights(made_up: str) -> None:
    kube = Kube(_Refusing(f'pods "{made_up}" is forbidden: exceeded quota: q'))
    with pytest.raises(click.ClickException) as refusal:
        await all_completed(kube, [_template()])
    assert refusal.value.message == (
        'A pod of Job team/p would be refused: pods "p" is forbidden: exceeded quota: q.'
    )


async def test_a_user_without_the_right_to_create_pods_is_told_of_rights() -> None:
    words = 'pods is forbidden: User "jane" cannot create resource "pods" in API group ""'
    with pytest.raises(Refused):
        await all_completed(Kube(_Refusing(words)), [_template()])


def test_a_list_without_objects_is_called_so(tmp_path: Path) -> None:
    file = tmp_path / "empty.yaml"
    file.write_text("kind: List\nitems: []\n")
    with pytest.raises(click.ClickException) as refusal:
        read_pod_templates(file, "default")
    assert refusal.value.message.endswith("such as a Deployment, found a list without objects.")
