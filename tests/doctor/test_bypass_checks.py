"""Pods that see cards without an allocation."""

from dataclasses import replace

from gpupool.doctor.evidence import Level
from kubeclient.objects import Obj
from tests.doctor.test_checks import GOOD, NOW, said

CDI = "nvidia.cdi.k8s.io/container.c"


def plain(annotations: Obj | None = None, name: str = "p", env: Obj | None = None) -> Obj:
    container: Obj = {"name": "c", "env": [env] if env else []}
    return {
        "metadata": {
            "name": name,
            "namespace": "a",
            "annotations": annotations or {},
            "creationTimestamp": NOW.isoformat(),
        },
        "spec": {"containers": [container], "nodeName": "n"},
        "status": {"phase": "Running"},
    }


def test_pods_that_named_their_devices_themselves_are_wrong() -> None:
    taken = plain({CDI: "nvidia.com/gpu=GPU-b"})
    assert "Pod a/p names devices that the scheduler has not given" in said(
        replace(GOOD, pods=(taken,))
    )
    bare = plain({"cdi.k8s.io": "nvidia.com/gpu=all"}, "q")
    assert "2 pods name devices" in said(replace(GOOD, pods=(taken, bare)))


def test_devices_that_the_scheduler_gave_are_right() -> None:
    given = plain({CDI: "nvidia.com/gpu=GPU-a", "devices.gpupool.io/c": "GPU-a"})
    operator = plain({CDI: "management.nvidia.com/gpu=all"})
    assert not said(replace(GOOD, pods=(given, operator)))
    more = plain(
        {CDI: "nvidia.com/gpu=GPU-a,nvidia.com/gpu=GPU-b", "devices.gpupool.io/c": "GPU-a"}
    )
    assert said(replace(GOOD, pods=(more,)))


def test_pods_that_ask_for_no_card_and_may_see_all_are_noted() -> None:
    name = "NVIDIA_VISIBLE_DEVICES"
    seeing = plain(env={"name": name, "value": "all"})
    assert "Pod a/p sets NVIDIA_VISIBLE_DEVICES" in said(replace(GOOD, pods=(seeing,)), Level.NOTE)
    for value in ("void", "none", ""):
        blind = plain(env={"name": name, "value": value})
        assert not said(replace(GOOD, pods=(blind,)), Level.NOTE)
