"""Which contexts a kubeconfig has, and which namespace kubectl would use."""

import os
from pathlib import Path

import pytest

from kubeclient.contexts import contexts_of, namespace_of

TWO = """
contexts:
- {name: a, context: {cluster: a, namespace: research}}
- {name: b, context: {cluster: b}}
current-context: a
"""


def written(folder: Path, text: str, name: str = "config") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_the_namespace_is_that_of_the_context(tmp_path: Path) -> None:
    file = written(tmp_path, TWO)
    assert namespace_of({"KUBECONFIG": file}) == "research"
    assert namespace_of({}, kubeconfig=file) == "research"
    assert namespace_of({}, kubeconfig=file, context="b") == "default"


def test_of_several_files_the_first_wins(tmp_path: Path) -> None:
    first = written(tmp_path, "contexts: [{name: b, context: {namespace: mine}}]", "first")
    both = os.pathsep.join((first, "", "/no/such/file", written(tmp_path, TWO)))
    assert contexts_of({"KUBECONFIG": both})[:2] == ({"b": "mine", "a": "research"}, "a")


def test_the_server_is_that_of_the_current_context(tmp_path: Path) -> None:
    servers = "clusters: [{name: a, cluster: {server: 'https://a'}}, {name: b, cluster: 3}]"
    file = written(tmp_path, TWO + servers)
    assert contexts_of({"KUBECONFIG": file}).server == "https://a"
    assert contexts_of({"KUBECONFIG": written(tmp_path, TWO)}).server == ""


def test_without_a_name_it_is_the_file_in_the_home(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    written(tmp_path / ".kube", TWO)
    assert namespace_of({"HOME": str(tmp_path)}) == "research"


def test_in_a_pod_it_is_the_namespace_of_the_pod(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOME": "/nowhere"}
    written(tmp_path, "secret", "token")
    assert namespace_of(environ, in_cluster=tmp_path) == "default"
    written(tmp_path, "team\n", "namespace")
    assert namespace_of(environ, in_cluster=tmp_path) == "team"


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "contexts: 3", "contexts: [3, {name: 4}, {name: a, context: 1}]", "\0"]
)
def test_what_is_no_kubeconfig_has_no_namespace(tmp_path: Path, text: str) -> None:
    assert namespace_of({}, kubeconfig=written(tmp_path, text)) == "default"
