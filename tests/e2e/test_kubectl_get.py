"""kubectl get: what is printed, in every format, and what is selected."""

import json
import re
from collections.abc import Iterator
from itertools import count

import pytest

from tests.e2e.conftest import OpenKubectl
from tests.e2e.kubectl import Kubectl, eventually
from tests.e2e.objects import config_map, container, deployment, pod

pytestmark = pytest.mark.kubectl


def columns(table: str) -> list[str]:
    """The heads of a table, which may have single spaces in them."""
    return re.split(r"\s{2,}", table.splitlines()[0].strip())


def rows(table: str) -> list[list[str]]:
    return [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()[1:]]


@pytest.fixture(scope="module")
def pods(open_kubectl: OpenKubectl) -> Iterator[Kubectl]:
    """Two running pods, for tests that only look: a (tier=front) and b (tier=back)."""
    with open_kubectl("get") as kubectl:
        kubectl.apply(
            pod("a", labels={"app": "web", "tier": "front"}),
            pod("b", container(), container("side"), labels={"app": "web", "tier": "back"}),
        )
        kubectl.wait("condition=Ready", "pod/a", "pod/b")
        yield kubectl


def test_get_prints_a_table(pods: Kubectl) -> None:
    table = pods("get", "pods")
    assert columns(table) == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [row[:4] for row in rows(table)] == [
        ["a", "1/1", "Running", "0"],
        ["b", "2/2", "Running", "0"],
    ]


def test_wide_output_adds_address_and_node(pods: Kubectl) -> None:
    table = pods("get", "pods", "-o", "wide")
    assert columns(table)[5:] == ["IP", "NODE", "NOMINATED NODE", "READINESS GATES"]
    assert re.fullmatch(r"\d+\.\d+\.\d+\.\d+", rows(table)[0][5])


def test_labels_are_shown_on_request(pods: Kubectl) -> None:
    assert "app=web,tier=front" in pods("get", "pods", "--show-labels")
    assert columns(pods("get", "pods", "-L", "tier"))[-1] == "TIER"


def test_one_object_is_found_by_name_and_by_kind_and_name(pods: Kubectl) -> None:
    assert rows(pods("get", "pod", "a"))[0][0] == "a"
    assert rows(pods("get", "po/b"))[0][0] == "b"
    assert pods.names("pods", "a", "b") == ["a", "b"]


def test_yaml_and_json_are_the_object(pods: Kubectl) -> None:
    found = pods.json("get", "pod", "a")
    assert (found["apiVersion"], found["kind"]) == ("v1", "Pod")
    assert found["status"]["phase"] == "Running"
    assert "managedFields" not in found["metadata"]
    text = pods("get", "pod", "a", "-o", "yaml")
    assert text.startswith("apiVersion: v1\nkind: Pod\n")
    shown = pods("get", "pod", "a", "-o", "yaml", "--show-managed-fields")
    assert "fieldsV1" in shown


def test_a_list_as_json_has_its_items(pods: Kubectl) -> None:
    found = pods.json("get", "pods")
    assert found["kind"] == "List"
    assert [item["kind"] for item in found["items"]] == ["Pod", "Pod"]


def test_jsonpath_and_templates_pick_fields(pods: Kubectl) -> None:
    path = '{range .items[*]}{.metadata.name}={.spec.containers[*].name}{"\\n"}{end}'
    assert pods("get", "pods", "-o", f"jsonpath={path}") == "a=web\nb=web side\n"
    go = "{{range .items}}{{.metadata.name}} {{len .spec.containers}};{{end}}"
    assert pods("get", "pods", "-o", f"go-template={go}") == "a 1;b 2;"
    filtered = '{.items[?(@.metadata.labels.tier=="back")].metadata.name}'
    assert pods("get", "pods", "-o", f"jsonpath={filtered}") == "b"


def test_custom_columns_are_printed(pods: Kubectl) -> None:
    table = pods("get", "pods", "-o", "custom-columns=N:.metadata.name,T:.metadata.labels.tier")
    assert table.split() == ["N", "T", "a", "front", "b", "back"]


def test_rows_are_sorted_by_a_field(pods: Kubectl) -> None:
    assert [row[0] for row in rows(pods("get", "pods", "--sort-by=.metadata.labels.tier"))] == [
        "b",
        "a",
    ]
    assert pods("get", "pods", "--no-headers", "--sort-by={.metadata.name}").startswith("a ")


def test_names_carry_the_kind(pods: Kubectl) -> None:
    assert pods("get", "pods", "-o", "name") == "pod/a\npod/b\n"


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("tier=front", ["a"]),
        ("tier==back", ["b"]),
        ("tier!=front", ["b"]),
        ("tier in (front, back)", ["a", "b"]),
        ("tier notin (front)", ["b"]),
        ("tier", ["a", "b"]),
        ("!tier", []),
        ("app=web,tier=back", ["b"]),
    ],
)
def test_label_selectors_choose(pods: Kubectl, selector: str, found: list[str]) -> None:
    assert pods.names("pods", "-l", selector) == found


def test_field_selectors_choose(pods: Kubectl) -> None:
    node = pods.field(".spec.nodeName", "pod", "a")
    assert "a" in pods.names("pods", f"--field-selector=spec.nodeName={node}")
    assert pods.names("pods", "--field-selector=status.phase=Pending") == []
    assert pods.names("pods", "--field-selector=metadata.name=b,status.phase!=Failed") == ["b"]


def test_an_unknown_field_label_is_refused(kubectl: Kubectl) -> None:
    said = kubectl.refused("get", "pods", "--field-selector=spec.foo=1")
    assert "field label not supported: spec.foo" in said


def test_a_bad_selector_is_refused(kubectl: Kubectl) -> None:
    assert "error" in kubectl.refused("get", "pods", "-l", "a==b==c").lower()


def test_what_is_not_there_is_an_error_unless_told_otherwise(kubectl: Kubectl) -> None:
    said = kubectl.refused("get", "pod", "nobody")
    assert said == 'Error from server (NotFound): pods "nobody" not found\n'
    assert kubectl("get", "pod", "nobody", "--ignore-not-found") == ""
    said = kubectl.refused("get", "deployments", "nobody")
    assert said == 'Error from server (NotFound): deployments.apps "nobody" not found\n'


def test_an_unknown_kind_is_an_error(kubectl: Kubectl) -> None:
    said = kubectl.refused("get", "gizmos")
    assert said == 'error: the server doesn\'t have a resource type "gizmos"\n'


def test_an_empty_namespace_says_so(kubectl: Kubectl) -> None:
    ended = kubectl.run("get", "pods")
    assert ended.code == 0
    assert ended.err == f"No resources found in {kubectl.namespace} namespace.\n"


def test_all_namespaces_are_listed_with_theirs(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("here"))
    table = kubectl("get", "configmaps", "-A", "--field-selector=metadata.name=here")
    assert columns(table)[0] == "NAMESPACE"
    assert [kubectl.namespace, "here"] in [row[:2] for row in rows(table)]


def test_several_kinds_are_listed_at_once(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("one"))
    listed = kubectl("get", "cm,sa", "-o", "name").split()
    assert {"configmap/one", "serviceaccount/default"} <= set(listed)


def test_get_all_shows_the_workloads(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web", 2))
    kubectl("rollout", "status", "deployment/web")
    shown = kubectl("get", "all")
    kinds = {name.partition("/")[0] for name in re.findall(r"^(\S+/\S+)", shown, re.MULTILINE)}
    assert kinds == {"pod", "deployment.apps", "replicaset.apps"}


def test_a_long_list_comes_in_pages(kubectl: Kubectl) -> None:
    kubectl.apply(*(config_map(f"c{number}") for number in range(7)))
    listed = kubectl.names("configmaps", "--chunk-size=2")
    assert listed == [*(f"c{number}" for number in range(7)), "kube-root-ca.crt"]


def test_objects_of_a_file_are_found(kubectl: Kubectl) -> None:
    file = kubectl.write("both.yaml", config_map("one"), config_map("two"))
    kubectl("create", "-f", file)
    assert kubectl("get", "-f", file, "-o", "name") == "configmap/one\nconfigmap/two\n"


def test_raw_paths_are_answered(kubectl: Kubectl) -> None:
    assert kubectl("get", "--raw", "/healthz") == "ok"
    path = f"/api/v1/namespaces/{kubectl.namespace}/configmaps"
    assert json.loads(kubectl("get", "--raw", path))["kind"] == "ConfigMapList"


def test_a_watch_shows_what_happens(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c", a="1"))
    with kubectl.start("get", "configmap", "c", "--watch") as watch:
        watch.shows("c      1")
        kubectl("patch", "configmap", "c", "--type=merge", "-p", '{"data":{"b":"2"}}')
        watch.shows("c      2")
        kubectl("delete", "configmap", "c")
        eventually(lambda: watch.text().count("\nc ") == 3)
        assert watch.text().count("NAME") == 1


def test_a_watch_names_its_events(kubectl: Kubectl) -> None:
    with kubectl.start("get", "pods", "--watch", "--output-watch-events") as watch:
        kubectl.apply(pod("a"))
        watch.shows("Running")
        kubectl("delete", "pod", "a", "--now")
        lines = watch.shows("DELETED").splitlines()
    assert lines[1].split()[0] == "ADDED"
    assert {line.split()[0] for line in lines[2:]} == {"MODIFIED", "DELETED"}


def test_watch_only_leaves_out_what_is_there(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("old"))
    attempts = count()  # each one changes it: the watch may begin after the first
    with kubectl.start("get", "configmaps", "--watch-only") as watch:
        eventually(
            lambda: (
                kubectl.apply(config_map("new", attempt=str(next(attempts))))
                and "new" in watch.text()
            )
        )
        assert "old" not in watch.text()
