"""The chart's policies on the local cluster. tests/kubernetes tries the same on a real one."""

from pathlib import Path

import pytest

from gpupool.testing import Cluster
from testbed.find_kubectl import ensure_kubectl
from tests.deploy.node_attacks import CHANGES, Thief, unexpected
from tests.deploy.test_chart import rendered
from tests.e2e.kubectl import Kubectl, eventually

pytestmark = [pytest.mark.clients, pytest.mark.kubectl]


def test_a_stolen_token_of_an_agent_changes_only_what_the_agent_owns(tmp_path: Path) -> None:
    program = ensure_kubectl()
    if program is None:
        pytest.skip("NO KUBECTL: the chart's policies were not tried.")
    pools = [{"name": "gpu", "instanceType": "ecs.gn4-c4g1.xlarge", "count": 2}]
    with Cluster(pools=pools) as cluster:
        kubectl = Kubectl(program, cluster.kubeconfig, tmp_path, "kube-system")
        kubectl(
            "apply",
            "-f",
            "-",
            stdin=rendered("second-scheduler", "-s", "templates/node-policies.yaml"),
        )
        eventually(
            lambda: len(kubectl.names("nodes", "-l", "aliyun.accelerator/nvidia_name")) == 2, 60
        )
        mine, other = kubectl.names("nodes", "-l", "aliyun.accelerator/nvidia_name")
        kubectl("label", "node", mine, "zone=a")
        bound = ("--bound-object-kind=Node", f"--bound-object-name={mine}")
        token = kubectl("create", "token", "gpupool-agent", *bound).strip()
        # The agents themselves go on: what somebody removes is there again.
        kubectl("label", "node", mine, "aliyun.accelerator/nvidia_count-")
        counted = ("nodes", "-l", "aliyun.accelerator/nvidia_count")
        eventually(lambda: mine in kubectl.names(*counted))
        thief = Thief(cluster.url, cluster.ca, token)
        eventually(lambda: "unschedulable" in thief.refusal(CHANGES["unschedulable"], mine, other))
        said = {what: thief.refusal(change, mine, other) for what, change in CHANGES.items()}
        assert not unexpected(said)
