"""kubectl create and run: the generators, which send protobuf."""

import base64
import json

import pytest

from tests.e2e.kubectl import Kubectl, eventually

pytestmark = pytest.mark.kubectl


def test_a_namespace(kubectl: Kubectl) -> None:
    name = f"{kubectl.namespace}-b"
    assert kubectl("create", "namespace", name) == f"namespace/{name} created\n"
    assert kubectl.field(".status.phase", "namespace", name) == "Active"
    eventually(lambda: kubectl.within(name).names("sa") == ["default"])
    eventually(lambda: kubectl.within(name).names("cm") == ["kube-root-ca.crt"])
    said = kubectl.refused("create", "namespace", name)
    assert said == f'Error from server (AlreadyExists): namespaces "{name}" already exists\n'
    kubectl("delete", "namespace", name)


def test_a_service_account_and_a_token_for_it(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot", "--duration=20m", "--audience=me").strip()
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["sub"] == f"system:serviceaccount:{kubectl.namespace}:robot"
    assert claims["aud"] == ["me"]
    assert claims["exp"] - claims["iat"] == 1200


def test_a_token_opens_the_door(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot").strip()
    said = kubectl("auth", "whoami", "--token", token, "-o", "jsonpath={.status.userInfo}")
    assert json.loads(said)["username"] == f"system:serviceaccount:{kubectl.namespace}:robot"


def test_a_config_map_of_literals_and_files(kubectl: Kubectl) -> None:
    (kubectl.folder / "file.bin").write_bytes(b"\xff\x00")
    (kubectl.folder / "text.txt").write_text("hello\n")
    kubectl(
        "create",
        "configmap",
        "c",
        "--from-literal=a=1",
        "--from-file=text.txt",
        "--from-file=file.bin",
    )
    found = kubectl.json("get", "configmap", "c")
    assert found["data"] == {"a": "1", "text.txt": "hello\n"}
    assert found["binaryData"] == {"file.bin": "/wA="}


def test_secrets_of_each_type(kubectl: Kubectl) -> None:
    kubectl("create", "secret", "generic", "plain", "--from-literal=a=1")
    assert kubectl.json("get", "secret", "plain")["data"] == {"a": "MQ=="}
    kubectl(
        "create", "secret", "docker-registry", "pull", "--docker-server=example.invalid",
        "--docker-username=u", "--docker-password=p",
    )  # fmt: skip
    assert kubectl.field(".type", "secret", "pull") == "kubernetes.io/dockerconfigjson"


def test_a_pod_by_run(kubectl: Kubectl) -> None:
    said = kubectl(
        "run", "web", "--image=nginx", "--port=80", "--labels=app=web,tier=front",
        "--env=A=1", "--restart=Never", "--", "serve", "--fast",
    )  # fmt: skip
    assert said == "pod/web created\n"
    found = kubectl.json("get", "pod", "web")
    assert found["metadata"]["labels"] == {"app": "web", "tier": "front"}
    container = found["spec"]["containers"][0]
    assert container["args"] == ["serve", "--fast"]
    assert container["env"] == [{"name": "A", "value": "1"}]
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert found["spec"]["restartPolicy"] == "Never"


def test_services_of_each_type(kubectl: Kubectl) -> None:
    kubectl("create", "service", "clusterip", "a", "--tcp=80:8080")
    kubectl("create", "service", "nodeport", "b", "--tcp=80:8080")
    kubectl("create", "service", "externalname", "c", "--external-name=example.invalid")
    kubectl("create", "service", "clusterip", "d", "--clusterip=None")
    spec = kubectl.json("get", "service", "a")["spec"]
    assert spec["clusterIP"].startswith("10.96.")
    assert spec["ports"] == [{"name": "80-8080", "port": 80, "protocol": "TCP", "targetPort": 8080}]
    assert 30000 <= int(kubectl.field(".spec.ports[0].nodePort", "service", "b")) < 32768
    assert kubectl.field(".spec.externalName", "service", "c") == "example.invalid"
    assert kubectl.field(".spec.clusterIP", "service", "d") == "None"


def test_a_service_by_expose(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx", "--port=8080")
    assert kubectl("expose", "deployment", "web", "--port=80", "--target-port=8080") == (
        "service/web exposed\n"
    )
    assert kubectl.json("get", "service", "web")["spec"]["selector"] == {"app": "web"}


def test_a_quota(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "q", "--hard=pods=2,requests.cpu=1")
    eventually(lambda: kubectl.field(".status.hard.pods", "quota", "q") == "2")
    assert kubectl.json("get", "quota", "q")["spec"]["hard"] == {"pods": "2", "requests.cpu": "1"}


def test_a_deployment(kubectl: Kubectl) -> None:
    said = kubectl("create", "deployment", "web", "--image=nginx", "--replicas=2", "--port=80")
    assert said == "deployment.apps/web created\n"
    kubectl("rollout", "status", "deployment/web")
    assert kubectl.field(".status.readyReplicas", "deployment", "web") == "2"


def test_a_job_and_a_cron_job(kubectl: Kubectl) -> None:
    kubectl("create", "job", "once", "--image=busybox", "--", "true")
    assert (
        kubectl.json("get", "job", "once")["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    )
    kubectl("create", "cronjob", "often", "--image=busybox", "--schedule=0 0 1 1 *", "--", "true")
    assert kubectl.field(".spec.schedule", "cronjob", "often") == "0 0 1 1 *"


def test_roles_and_bindings(kubectl: Kubectl) -> None:
    name = kubectl.namespace
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods,deployments.apps")
    kubectl("create", "rolebinding", "readers", "--role=reader", "--user=ann", "--group=staff")
    kubectl("create", "clusterrole", name, "--verb=get", "--non-resource-url=/metrics")
    kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", "--user=ann")
    assert kubectl.json("get", "role", "reader")["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]},
    ]
    subjects = kubectl.json("get", "rolebinding", "readers")["subjects"]
    assert [each["kind"] for each in subjects] == ["User", "Group"]
    kubectl("delete", "clusterrole,clusterrolebinding", name)


def test_budgets_priorities_and_ingresses(kubectl: Kubectl) -> None:
    kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=50%")
    assert kubectl.field(".spec.minAvailable", "pdb", "web") == "50%"
    name = kubectl.namespace
    kubectl("create", "priorityclass", name, "--value=1000", "--description=high")
    assert kubectl.field(".value", "priorityclass", name) == "1000"
    kubectl("delete", "priorityclass", name)
    kubectl("create", "ingress", "web", "--rule=example.invalid/*=web:80", "--class=none")
    path = ".spec.rules[0].http.paths[0].backend.service.name"
    assert kubectl.field(path, "ingress", "web") == "web"


def test_names_can_be_generated(kubectl: Kubectl) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}}
    said = kubectl("create", "-f", "-", stdin=json.dumps(body))
    assert said.startswith("configmap/c-")
    assert len(said) == len("configmap/c-12345 created\n")


def test_dry_runs_print_what_they_would_send(kubectl: Kubectl) -> None:
    flags = ("--image=nginx", "-o", "yaml")
    shown = kubectl("create", "deployment", "web", *flags, "--dry-run=client")
    assert "kind: Deployment" in shown
    shown = kubectl("create", "deployment", "web", *flags, "--dry-run=server")
    assert "revisionHistoryLimit: 10" in shown
    assert kubectl.names("deployments") == []


def test_save_config_makes_later_applies_quiet(kubectl: Kubectl) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    file = kubectl.write("c.yaml", body)
    kubectl("create", "--save-config", "-f", file)
    ended = kubectl.run("apply", "-f", file)
    assert (ended.out, ended.err) == ("configmap/c unchanged\n", "")


def test_apply_warns_about_what_it_did_not_make(kubectl: Kubectl) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    file = kubectl.write("c.yaml", body)
    kubectl("create", "-f", file)
    ended = kubectl.run("apply", "-f", file)
    assert ended.out == "configmap/c configured\n"
    assert "is missing the kubectl.kubernetes.io/last-applied-configuration annotation" in ended.err
