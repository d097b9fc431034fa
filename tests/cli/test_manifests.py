"""Manifests as commands read them: whatever a file says, the answer is a message."""

from pathlib import Path

import click
import pytest

from gpupool.cli.manifests import read_pod_templates


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
