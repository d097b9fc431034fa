"""The profile of kube-scheduler to which the chart sends GPU pods, and upgrades that need it."""

import re
from pathlib import Path

import pytest
import yaml

from gpupool.contract.names import EXTENDER_PROFILE
from gpupool.testing import Cluster
from kubeclient.objects import Obj
from testbed.find_kubectl import ensure_kubectl
from tests.deploy.test_chart import CHART, MODES, helm, rendered, upgraded
from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.clients

AS_BEFORE = "--set=extender.schedulerName=default-scheduler"
EXTENDER = "gpupool-extender"  # its Deployment


def sent_to(text: str) -> str:
    """What admission writes into pods."""
    found = re.search(r"\[gpupool, admission\].*?--scheduler-name=(\S+)", text, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("mode", MODES)
def test_gpu_pods_go_to_the_profile_where_kube_scheduler_places_them(mode: str) -> None:
    wanted = EXTENDER_PROFILE if mode == "extender" else "gpupool-scheduler"
    assert sent_to(rendered(mode)) == wanted


def test_gpu_pods_can_stay_with_the_default_scheduler() -> None:
    assert sent_to(rendered("extender", AS_BEFORE)) == "default-scheduler"


def test_values_of_an_older_chart_change_nothing() -> None:
    """`helm upgrade --reuse-values`."""
    flag = "--set=extender.schedulerName=null"
    assert sent_to(rendered("extender", flag)) == "default-scheduler"


def test_a_name_that_no_profile_has_is_refused() -> None:
    flags = ("--set=mode=extender", "--set=extender.schedulerName=mine")
    done = helm("template", "gpupool", str(CHART), *flags)
    assert done.returncode != 0
    assert "schedulerName" in done.stderr


def deployment(*flags: str) -> Obj:
    made = yaml.safe_load_all(rendered("extender", *flags))
    (found,) = (
        each
        for each in made
        if each and (each["kind"], each["metadata"]["name"]) == ("Deployment", EXTENDER)
    )
    return dict(found)


def test_an_upgrade_sends_no_pods_to_a_profile_that_nobody_was_told_of(tmp_path: Path) -> None:
    program = ensure_kubectl()
    if program is None:
        pytest.skip("NO KUBECTL: the upgrade was not tried.")
    with Cluster() as cluster:
        kubectl = Kubectl(program, cluster.kubeconfig, tmp_path, "kube-system")

        def notes(*flags: str) -> str:
            where = ("--namespace=kube-system", f"--kubeconfig={cluster.kubeconfig}")
            asked = ("install", "gpupool", str(CHART), "--dry-run=server", "--take-ownership")
            said = helm(*asked, "--set=mode=extender", *where, *flags).stdout
            return " ".join(said[said.index("NOTES:") :].split())

        assert "GPU pods wait until your kube-scheduler uses gpupool" in notes()
        assert "upgrade with extender.schedulerName=gpupool-extender" in notes(AS_BEFORE)

        def running(found: Obj) -> None:
            kubectl("delete", "deployment", EXTENDER, "--ignore-not-found")
            kubectl("apply", "-f", "-", stdin=yaml.safe_dump(found))

        older = deployment()
        del older["metadata"]["annotations"]
        running(older)
        said = upgraded(cluster)
        assert "has no profile gpupool-extender yet" in said
        assert "Upgrade with --set extender.schedulerName=default-scheduler first" in said
        assert sent_to(upgraded(cluster, AS_BEFORE)) == "default-scheduler"

        older = deployment("--set=extender.knownCallersOnly=false")
        del older["metadata"]["annotations"]
        running(older)
        both = "extender.knownCallersOnly=false,extender.schedulerName=default-scheduler"
        assert f"Upgrade with --set {both} first" in upgraded(cluster)

        running(deployment(AS_BEFORE))
        assert sent_to(upgraded(cluster)) == EXTENDER_PROFILE, "the notes have told of the profile"
