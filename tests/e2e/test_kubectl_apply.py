"""kubectl apply from the client's side: create, change, unchanged, prune, diff, kustomize."""

import pytest

from kubeclient.objects import Obj
from tests.e2e.kubectl import Kubectl, stream_of
from tests.e2e.objects import config_map, container, deployment, pod, service, template

pytestmark = pytest.mark.kubectl


def test_apply_creates_configures_and_sees_that_nothing_changed(kubectl: Kubectl) -> None:
    assert kubectl.apply(deployment("web")) == "deployment.apps/web created\n"
    assert kubectl.apply(deployment("web")) == "deployment.apps/web unchanged\n"
    assert kubectl.apply(deployment("web", 2)) == "deployment.apps/web configured\n"
    assert kubectl.field(".spec.replicas", "deploy", "web") == "2"


def test_unchanged_means_the_version_stays(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c", a="1"))
    before = kubectl.field(".metadata.resourceVersion", "cm", "c")
    kubectl.apply(config_map("c", a="1"))
    assert kubectl.field(".metadata.resourceVersion", "cm", "c") == before


def test_several_objects_of_a_directory_are_applied(kubectl: Kubectl) -> None:
    (kubectl.folder / "all").mkdir()
    kubectl.write("all/a.yaml", config_map("a"), service("a"))
    kubectl.write("all/b.yaml", config_map("b"))
    assert kubectl("apply", "-f", "all").splitlines() == [
        "configmap/a created",
        "service/a created",
        "configmap/b created",
    ]


def test_what_is_left_out_next_time_is_removed(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c", a="1", b="2"))
    kubectl("patch", "cm", "c", "--type=merge", "-p", '{"data":{"other":"kept"}}')
    kubectl.apply(config_map("c", a="1"))
    assert kubectl.json("get", "cm", "c")["data"] == {"a": "1", "other": "kept"}


def test_lists_are_merged_by_their_keys(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web", template=template(container("one"), container("two"))))
    changed = template(container("two", "nginx:2"), container("three"))
    kubectl.apply(deployment("web", template=changed))
    path = "{range .spec.template.spec.containers[*]}{.name}={.image} {end}"
    shown = kubectl("get", "deploy", "web", "-o", f"jsonpath={path}")
    assert shown == "two=nginx:2 three=nginx:1 "


def test_environment_and_ports_are_removed_by_their_keys(kubectl: Kubectl) -> None:
    def with_env(*names: str, ports: list[int]) -> Obj:
        made = container(
            env=[{"name": name, "value": "1"} for name in names],
            ports=[{"containerPort": port} for port in ports],
        )
        return deployment("web", template=template(made))

    kubectl.apply(with_env("A", "B", ports=[80, 81]))
    kubectl.apply(with_env("B", "C", ports=[81]))
    found = kubectl.json("get", "deploy", "web")["spec"]["template"]["spec"]["containers"][0]
    assert [each["name"] for each in found["env"]] == ["B", "C"]
    assert [each["containerPort"] for each in found["ports"]] == [81]


def test_an_unknown_field_is_refused(kubectl: Kubectl) -> None:
    wrong = deployment("web")
    wrong["spec"]["replcas"] = wrong["spec"].pop("replicas")
    said = kubectl.refused("apply", "-f", "-", stdin=stream_of(wrong))
    assert 'strict decoding error: unknown field "spec.replcas"' in said
    warned = kubectl.run("apply", "--validate=warn", "-f", "-", stdin=stream_of(wrong))
    assert warned.code == 0
    assert 'Warning: unknown field "spec.replcas"' in warned.err


def test_an_invalid_object_is_refused_with_every_reason(kubectl: Kubectl) -> None:
    wrong = deployment("web", -1, template=template(container("Bad_Name")))
    said = kubectl.refused("apply", "-f", "-", stdin=stream_of(wrong))
    assert 'The Deployment "web" is invalid:' in said
    assert "* spec.replicas: Invalid value: -1: must be greater than or equal to 0" in said
    assert "* spec.template.spec.containers[0].name: Invalid value" in said


def test_an_immutable_field_cannot_be_changed(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web"))
    other = deployment("web", selector={"matchLabels": {"app": "web", "more": "x"}})
    other["spec"]["template"]["metadata"] = {"labels": {"app": "web", "more": "x"}}
    said = kubectl.refused("apply", "-f", "-", stdin=stream_of(other))
    assert "field is immutable" in said


def test_a_running_pod_takes_a_new_image_and_nothing_else(kubectl: Kubectl) -> None:
    kubectl.apply(pod("web"))
    kubectl.apply(pod("web", container(image="nginx:2")))
    said = kubectl.refused("apply", "-f", "-", stdin=stream_of(pod("web", container(args=["x"]))))
    assert "pod updates may not change fields other than" in said


@pytest.mark.parametrize("where", ["client", "server"])
def test_a_dry_run_stores_nothing(kubectl: Kubectl, where: str) -> None:
    said = kubectl.apply(config_map("c"), flags=(f"--dry-run={where}",))
    assert said.startswith(f"configmap/c created ({'' if where == 'client' else 'server '}dry run)")
    assert "c" not in kubectl.names("configmaps")


def test_a_dry_run_of_the_server_shows_its_defaults(kubectl: Kubectl) -> None:
    shown = kubectl(
        "apply", "--dry-run=server", "-o", "yaml", "-f", "-", stdin=stream_of(deployment("web"))
    )
    assert "revisionHistoryLimit: 10" in shown


def test_diff_shows_what_would_change(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web"))
    same = kubectl.run("diff", "-f", "-", stdin=stream_of(deployment("web")))
    assert (same.code, same.out) == (0, "")
    other = kubectl.run("diff", "-f", "-", stdin=stream_of(deployment("web", 3)))
    assert other.code == 1
    assert "-  replicas: 1\n+  replicas: 3\n" in other.out
    assert kubectl.field(".spec.replicas", "deploy", "web") == "1"


def test_diff_of_something_new_shows_all_of_it(kubectl: Kubectl) -> None:
    ended = kubectl.run("diff", "-f", "-", stdin=stream_of(config_map("c", a="1")))
    assert ended.code == 1
    assert '+  a: "1"' in ended.out


def test_prune_deletes_what_the_files_no_longer_have(kubectl: Kubectl) -> None:
    labels = {"set": "mine"}
    kubectl.apply(config_map("a", labels), config_map("b", labels), config_map("other"))
    said = kubectl.apply(config_map("a", labels), flags=("--prune", "-l", "set=mine"))
    assert "configmap/b pruned" in said
    assert set(kubectl.names("configmaps")) == {"a", "other", "kube-root-ca.crt"}


def test_an_apply_set_prunes_too(kubectl: Kubectl) -> None:
    flags = ("--server-side", "--prune", "--applyset=mine")
    env = {"KUBECTL_APPLYSET": "true"}
    both = stream_of(config_map("a"), config_map("b"))
    kubectl("apply", *flags, "-f", "-", stdin=both, env=env)
    said = kubectl("apply", *flags, "-f", "-", stdin=stream_of(config_map("a")), env=env)
    assert "configmap/b pruned" in said


def test_the_last_applied_form_is_kept(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c", a="1"))
    assert 'a: "1"' in kubectl("apply", "view-last-applied", "configmap/c")
    file = kubectl.write("c.yaml", config_map("c", a="2"))
    kubectl("apply", "set-last-applied", "-f", file)
    assert 'a: "2"' in kubectl("apply", "view-last-applied", "configmap/c")
    assert kubectl.field(".data.a", "cm", "c") == "1"


def test_a_kustomization_is_applied_and_deleted(kubectl: Kubectl) -> None:
    (kubectl.folder / "base").mkdir()
    kubectl.write("base/web.yaml", deployment("web"))
    (kubectl.folder / "base" / "kustomization.yaml").write_text(
        "resources: [web.yaml]\n"
        "namePrefix: my-\n"
        "replicas: [{name: web, count: 2}]\n"
        "configMapGenerator: [{name: settings, literals: [a=1]}]\n"
    )
    said = kubectl("apply", "-k", "base").splitlines()
    assert said[0].startswith("configmap/my-settings-")
    assert said[1] == "deployment.apps/my-web created"
    assert kubectl.field(".spec.replicas", "deploy", "my-web") == "2"
    kubectl("delete", "-k", "base")
    assert kubectl.names("deployments") == []
