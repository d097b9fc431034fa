"""A workload is made by a form, which shows what it makes and where that fits."""

import html
import re

import pytest
import yaml

from gpupool.console.parts.form import Invalid
from gpupool.console.words import ENGLISH, translator
from gpupool.console.workload_manifest import objects_of_form, yaml_of_objects
from tests.console.conftest import Office
from tests.e2e.api import call

pytestmark = pytest.mark.timeout(600)

T = translator(ENGLISH)
FORM = {
    "name": "formed",
    "kind": "Deployment",
    "namespace": "default",
    "image": "busybox",
    "command": "",
    "replicas": "1",
    "gpu": "share",
    "units": "3",
    "cards": "1",
    "pool": "",
    "ports": "",
    "env": "",
    "service": "",
    "step": "",
}


def test_the_form_makes_a_workload_with_all_that_was_said() -> None:
    said = {
        "command": "python3 -c 'print(1)'",
        "pool": "cgpu",
        "ports": "80:8888 web\n53/UDP",
        "env": "A=1\nB=x=y",
        "service": "LoadBalancer",
        "replicas": "2",
    }
    deployment, service = objects_of_form(T, {**FORM, **said})
    assert deployment["spec"]["replicas"] == 2
    pod = deployment["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"node.gpupool.io/pool": "cgpu"}
    (container,) = pod["containers"]
    assert container["command"] == ["python3", "-c", "print(1)"]
    assert container["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "x=y"}]
    assert container["resources"] == {"limits": {"aliyun.com/gpu-mem": 3}}
    assert [each["containerPort"] for each in container["ports"]] == [8888, 53]
    assert service["spec"]["type"] == "LoadBalancer"
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    assert "&id" not in yaml_of_objects([deployment, service])
    assert list(yaml.safe_load_all(yaml_of_objects([deployment, service]))) == [deployment, service]


def test_whole_cards_no_cards_and_jobs() -> None:
    (whole,) = objects_of_form(T, {**FORM, "gpu": "whole", "cards": "2"})
    limits = whole["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"nvidia.com/gpu": 2}
    (job,) = objects_of_form(T, {**FORM, "gpu": "none", "kind": "Job", "replicas": "3"})
    assert (job["spec"]["completions"], job["spec"]["parallelism"]) == (3, 3)
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert "resources" not in job["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("ports", {"service": "ClusterIP"}),
        ("ports", {"ports": "80:web"}),
        ("command", {"command": "echo 'half"}),
        ("env", {"env": "no value"}),
    ],
)
def test_what_makes_no_sense_is_told_at_its_field(field: str, said: dict[str, str]) -> None:
    with pytest.raises(Invalid) as invalid:
        objects_of_form(T, {**FORM, **said})
    assert list(invalid.value.errors) == [field]


def test_the_preview_says_where_it_fits_and_nothing_is_made(office: Office) -> None:
    """The node has one card, for whole cards."""
    whole = {**FORM, "gpu": "whole", "step": "preview"}
    status, page, _ = office.sends("create/form", **whole)
    assert status == 200
    said = re.search(r'id="fit">(.*?)</p>', page)
    assert said is not None
    assert re.fullmatch(r"Fits on 1 of 1 nodes right now. One would go to \S+, card 0.", said[1]), (
        said[1]
    )
    assert "nvidia.com/gpu: 1" in page
    assert "Create 1 Deployment" in page
    page = office.sends("create/form", **{**whole, "cards": "9"})[1]
    assert "Fits on no node right now." in page
    assert (
        call(office.cluster, "GET", "/apis/apps/v1/namespaces/default/deployments/formed")[0] == 404
    )
    page = office.sends("create/form", **{**FORM, "step": "preview"})[1]
    assert "aliyun.com/gpu-mem: 3" in page
    nobody = office.as_user("form-viewer", "edit")
    page = nobody.sends("create/form", **{**FORM, "step": "preview"})[1]
    assert "you need the right to see all nodes and pods" in html.unescape(page)


def test_the_form_makes_the_objects_once(office: Office) -> None:
    made = {**FORM, "name": "made-once", "ports": "8080", "service": "ClusterIP", "gpu": "none"}
    assert office.sends("create/form", **made)[::2] == (303, "deployments/default/made-once")
    assert office.finds("/api/v1/namespaces/default/services/made-once")["spec"]["ports"]
    status, page, _ = office.sends("create/form", **made)
    assert status == 422
    assert "already exists" in page, "what is there is not overwritten"
    viewer = office.as_user("form-looker", "view")
    status, page, _ = viewer.sends("create/form", **{**made, "name": "not-mine"})
    assert status == 422
    assert "forbidden" in page
    for wrong in (
        {"name": ""},
        {"kind": "Pod"},
        {"replicas": "-1"},
        {"units": "0"},
        {"units": "x"},
    ):
        assert office.sends("create/form", **{**made, "gpu": "share", **wrong})[0] == 422
