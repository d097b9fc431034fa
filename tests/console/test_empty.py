"""Lists with nothing in them: each says so, and what to do next."""

import pytest

from gpupool.console.pages.pod import pod_sentence
from gpupool.console.rows.pods import pod_row
from gpupool.console.words import ENGLISH, translator
from kubeclient.objects import Obj
from tests.console.conftest import Office

pytestmark = pytest.mark.timeout(600)

POOLS = "/apis/gpupool.io/v1alpha1/nodepools"
WORKLOADS = ("deployments", "statefulsets", "daemonsets", "jobs", "cronjobs")


@pytest.mark.parametrize("path", [*WORKLOADS, "pods", "services", "configmaps", "secrets"])
def test_an_empty_list_offers_to_create_what_belongs_there(office: Office, path: str) -> None:
    office_page = office.sees(f"{path}?namespace=nobody-lives-here")[1]
    empty = office_page.partition('class="empty"')[2].partition("</p>")[0]
    assert "/create" in empty, office_page


def test_a_pool_without_nodes_does_not_say_that_the_cluster_has_none(office: Office) -> None:
    spec = {"count": 0, "instanceType": "ecs.gn6v-c8g1.2xlarge"}
    head = {"apiVersion": "gpupool.io/v1alpha1", "kind": "NodePool"}
    office.makes(POOLS, {**head, "metadata": {"name": "bare"}, "spec": spec})
    page = office.sees("pools/bare")[1]
    assert "It has no nodes." in page
    assert "The cluster has no nodes." not in page


def test_a_waiting_pod_opens_with_one_sentence_without_preemption() -> None:
    why = "0/4 nodes are available: 4 Insufficient cpu. preemption: 0/4 nodes are available: 4 No."
    condition = {"type": "PodScheduled", "status": "False", "message": why}
    pod: Obj = {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"containers": []}}
    pod["status"] = {"phase": "Pending", "conditions": [condition]}
    sentence = pod_sentence(translator(ENGLISH), pod_row(pod))
    assert sentence == "Waits for a node. 0/4 nodes are available: 4 Insufficient cpu."
