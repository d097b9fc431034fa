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
