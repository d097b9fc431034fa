"""Pods that want to see cards and ask for none."""

from pathlib import Path

import pytest

from kubeclient.errors import Refused
from kubeclient.objects import Obj
from kubeclient.resources import NAMESPACES, PODS
from localkube.apiserver.security.identities import ADMIN
from tests.admission.pods import admitted, container, pod, refusal
from tests.admission.server import webhook, whole_server

VARIABLE = "NVIDIA_VISIBLE_DEVICES"


def seeing(name: str, value: str = "all", **limits: str) -> Obj:
    one = {**container("main", **limits), "image": "pause"}
    one["env"] = [{"name": VARIABLE, "value": value}]
    return {**pod(one), "metadata": {"name": name, "namespace": "default"}}


def test_a_container_of_a_gpu_pod_sees_cards_only_by_a_request_of_its_own() -> None:
    side = {**container("side"), "env": [{"name": VARIABLE, "value": "all"}]}
    assert refusal(pod(container(gpu_mem=3), side)) == (
        "spec.containers[1].env[0].name: wanted a request for GPUs in this container beside "
        "NVIDIA_VISIBLE_DEVICES, found none"
    )
    side["env"][0]["value"] = "void"
    assert admitted(pod(container(gpu_mem=3), side))


async def test_unrequested_cards_are_hidden_where_the_operator_wants_it(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as server, webhook(server, hide_unrequested=True):
        kube = server.client(ADMIN)
        made = await kube.create(PODS, seeing("a"))
        assert made["spec"]["containers"][0]["env"] == [{"name": VARIABLE, "value": "void"}]
        made = await kube.create(PODS, seeing("b", "none"))
        assert made["spec"]["containers"][0]["env"][0]["value"] == "none"
        with pytest.raises(Refused, match="gpupool does not set itself"):
            await kube.create(PODS, seeing("c", gpu="1"))
        labels = {"gpupool.io/see-all-cards": "true"}
        await kube.patch(NAMESPACES.path(name="default"), {"metadata": {"labels": labels}})
        made = await kube.create(PODS, seeing("d"))
        assert made["spec"]["containers"][0]["env"][0]["value"] == "all"


async def test_by_default_nothing_is_hidden(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as server, webhook(server):
        made = await server.client(ADMIN).create(PODS, seeing("a"))
        assert made["spec"]["containers"][0]["env"][0]["value"] == "all"
