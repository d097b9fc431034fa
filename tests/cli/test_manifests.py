"""Manifests as commands read them: whatever a file says, the answer is a message."""

from pathlib import Path

import click
import pytest

from gpupool.cli.manifests import read_pod_templates


def test_a_number_that_json_cannot_have_is_a_message(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(f"kind: Pod\nspec: {{containers: [], priority: {'9' * 30}}}\n")
    with pytest.raises(click.ClickException, match="cannot be sent as JSON"):
        read_pod_templates(file, "default")
