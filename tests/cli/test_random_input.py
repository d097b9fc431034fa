"""Random files for the commands that read files: an answer or a message, never a traceback."""

import json
import os
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpupool.cli.main import gpupool
from gpupool.cli.manifests import read_pod_templates
from gpupool.local.config.cluster_file import parse_cluster, report
from tests.cli.bad_input.files import HEAD, kubeconfig, pod
from tests.cli.test_bad_input import INTERNAL

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["", "1e400", "3GiB", "-1", "true", "..", "a/b", "\x00", "9" * 5000]),
)
# What our readers look for, so that they find it in odd places.
NAMES = """
apiVersion kind name pools count instanceType labels autoscaling min max network nodes quotas
metadata spec containers template items status allocatable gpus gpu cpu memory
clusters users contexts context cluster user current-context server token
"""
KEYS = st.sampled_from(NAMES.split()) | st.text(max_size=4)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
FEW = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def replaced(draw: st.DrawFn, whole: Any, value: Any) -> Any:
    """The same with one of its values, at any depth, replaced."""
    if isinstance(whole, dict) and whole and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(whole)))
        return {**whole, key: replaced(draw, whole[key], value)}
    if isinstance(whole, list) and whole and draw(st.booleans()):
        return [replaced(draw, whole[0], value), *whole[1:]]
    return value


@st.composite
def almost(draw: st.DrawFn, text: str) -> str:
    """A good file in which one value is another one."""
    return json.dumps(replaced(draw, yaml.safe_load(text), draw(VALUES)))


def random_text(good: str) -> st.SearchStrategy[str]:
    return almost(good) | VALUES.map(json.dumps) | st.text(max_size=40)


GOOD_CLUSTER = f"{HEAD}pools: [{{name: a, count: 1, instanceType: ecs.g6.xlarge}}]"
GOOD_TRACE = (
    '{"pods": [{"name": "a", "cpu": 1, "memory": "1Gi", "gpu": 1}],'
    ' "nodes": [{"name": "n", "cpu": 8, "memory": "9Gi", "gpu": 1}]}'
)
GOOD_SNAPSHOT = json.dumps(
    {
        "kind": "List",
        "items": [
            {
                "kind": "Node",
                "metadata": {"name": "n", "labels": {}},
                "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"}},
            },
            {
                **yaml.safe_load(pod("nvidia.com/gpu: 1")),
                "metadata": {"name": "a", "namespace": "default", "uid": "u"},
                "status": {"phase": "Running"},
            },
        ],
    }
)


def answered(*arguments: str) -> None:
    result = CliRunner().invoke(gpupool, arguments, catch_exceptions=False)
    assert result.exit_code in (0, 1, 2)
    assert bool(result.stdout) == (result.exit_code == 0)
    assert not INTERNAL.search(result.stderr)


@FEW
@given(text=random_text(GOOD_CLUSTER))
def test_any_cluster_file_is_parsed_or_explained(text: str) -> None:
    found = parse_cluster(text)
    if isinstance(found, tuple):
        assert not INTERNAL.search(report(found, "file"))


@FEW
@given(text=random_text(pod("aliyun.com/gpu-mem: 3")))
def test_any_manifest_is_read_or_explained(tmp_path: Path, text: str) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    message = ""
    try:
        read_pod_templates(file, "default")
    except click.ClickException as error:
        message = error.message
    assert not INTERNAL.search(message)


@FEW
@given(
    text=random_text(GOOD_TRACE) | almost(GOOD_SNAPSHOT) | st.text("name,cpu1\n\",;'", max_size=60)
)
def test_any_trace_is_replayed_or_explained(tmp_path: Path, text: str) -> None:
    file = tmp_path / "trace"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    answered("replay", str(file), "--nodes", str(file))


@FEW
@given(text=random_text(kubeconfig()))
def test_any_kubeconfig_is_used_or_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setitem(os.environ, "HOME", str(tmp_path))
    file = tmp_path / "kubeconfig"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    answered("gpu", "list", "--kubeconfig", str(file))
