"""Manifests that try to switch the limiter off, on a real kubelet with containerd and runc.

The runtime follows links in images and volumes when it mounts, and admission sees neither. So the
limiter itself refuses a limit file that is not on the mount of the kubelet.
"""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.contract.names import RESOURCE_GPU_MEM
from kubeclient.objects import Obj
from testbed import debian, python_image
from testbed.build import BuildError
from testbed.cluster import Kubernetes
from testbed.gpu_images import GPU
from testbed.images import Image, add_link, busybox_layer, small_images, write_archive
from testbed.installation import Installation
from tests.e2e.kubectl import Kubectl, eventually, stream_of
from tests.e2e.limiter_attacks import (
    INSIDE,
    OVER,
    SHARE_MIB,
    TAKE,
    Change,
    empty,
    forged_files,
    message,
    mount,
)
from tests.kubernetes.conftest import ELSEWHERE, LONGEST_S, sharing_everywhere
from tests.kubernetes.pods import IMAGE, gpu_pod

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]

LIMITS = {"subPath": "limits"}
LINKED = "gpupool.test/links:1"  # an image with links to /etc and /etc/gpupool
# It may fail: the directory is read-only, unless the attack worked.
WRITE = 'echo unlimited > /etc/gpupool/limits; exec python3 -c "$0"'
HELD, NOTHING, PAST = f"0 0 2 {SHARE_MIB}", "0 2 2 0", "0 0 0 16130"
STAY = f"{TAKE}\nimport time\ntime.sleep(2**31)"


def write_images(target: Path) -> None:
    links = io.BytesIO()
    with tarfile.open(fileobj=links, mode="w") as layer:
        add_link(layer, "etc-link", "/etc")
        add_link(layer, "leads/etc", "/etc")
        add_link(layer, "leads/gpupool", "/etc/gpupool")
    layers = {
        "busybox": busybox_layer(debian.ensure("busybox")),
        "python": python_image.python_layer(),
        "links": links.getvalue(),
    }
    images = [
        *small_images(),
        Image((GPU,), ("busybox", "python"), ("/bin/sh",), python_image.ENVIRONMENT),
        Image((LINKED,), tuple(layers), ("/bin/sh",), python_image.ENVIRONMENT),
    ]
    write_archive(target, layers, images)


@pytest.fixture(scope="module")
def kubernetes(able: None) -> Iterator[Kubernetes]:
    try:
        with Kubernetes(nodes=1, images=write_images) as running:
            yield running
    except BuildError as error:
        pytest.fail(f"NO REAL KUBERNETES: {error}", pytrace=False)


@pytest.fixture(scope="module")
def gpupool(kubernetes: Kubernetes, admin: Kubectl) -> Iterator[Installation]:
    with sharing_everywhere(kubernetes, admin, cards=1) as installed:
        yield installed


@pytest.fixture
def forging(kubectl: Kubectl) -> Kubectl:
    kubectl.apply(forged_files())
    return kubectl


def attempt(change: Change | None = None) -> Obj:
    place = {"nodeSelector": {"cgpu.disable.isolation": "false"}, "restartPolicy": "Never"}
    made = gpu_pod("attempt", RESOURCE_GPU_MEM, 1, **place)
    container = made["spec"]["containers"][0]
    container["command"] = ["sh", "-c", WRITE, TAKE]
    if change:
        change(made["spec"], container)
    return made


def output(kubectl: Kubectl, pod: Obj) -> str:
    kubectl.apply(pod)
    kubectl.wait("jsonpath={.status.phase}=Succeeded", "pod/attempt", within_s=80)
    return kubectl("logs", "attempt")


def with_link(target: str, then: Change) -> Change:
    """An init container makes the link /own/x in a volume; the container has the volume, too."""

    def change(spec: Obj, container: Obj) -> None:
        spec["volumes"] = [{"name": "own", "emptyDir": {}}]
        container["volumeMounts"] = [{"name": "own", "mountPath": "/own"}]
        first = {
            "name": "first",
            "image": IMAGE,
            "command": ["ln", "-s", target, "/own/x"],
            "volumeMounts": container["volumeMounts"],
        }
        spec["initContainers"] = [first]
        then(spec, container)

    return change


def with_image(image: str, then: Change) -> Change:
    def change(spec: Obj, container: Obj) -> None:
        container["image"] = image
        then(spec, container)

    return change


BY_VOLUME: dict[str, Change] = {
    "a file": with_link("/etc/gpupool", mount("/own/x/limits", **LIMITS)),
    "a directory": with_link("/etc/gpupool", mount("/own/x")),
    "a link to the file": with_link("/etc/gpupool/limits", mount("/own/x", **LIMITS)),
    "a link above": with_link("/etc", mount("/own/x/gpupool/limits", **LIMITS)),
    "the last message": with_link("/etc/gpupool", message("/own/x/limits")),
}
BY_IMAGE: dict[str, Change] = {
    "a file": with_image(LINKED, mount("/leads/gpupool/limits", **LIMITS)),
    "a directory": with_image(LINKED, mount("/leads/gpupool")),
    "the last message": with_image(LINKED, message("/leads/etc/gpupool/limits")),
}


def test_an_honest_pod_gets_its_share(kubectl: Kubectl) -> None:
    said = output(kubectl, attempt())
    assert "Read-only file system" in said
    assert HELD in said.splitlines()


@pytest.mark.parametrize("name", BY_VOLUME)
def test_a_link_in_a_volume_leads_to_no_other_limit(forging: Kubectl, name: str) -> None:
    said = output(forging, attempt(BY_VOLUME[name]))
    assert f"gpupool: /etc/gpupool/limits: {OVER}" in said
    assert NOTHING in said.splitlines()


@pytest.mark.skipif(bool(ELSEWHERE), reason="needs an image with links")
@pytest.mark.parametrize("name", BY_IMAGE)
def test_a_link_in_an_image_leads_to_no_other_limit(forging: Kubectl, name: str) -> None:
    said = output(forging, attempt(BY_IMAGE[name]))
    assert f"gpupool: /etc/gpupool/limits: {OVER}" in said
    assert NOTHING in said.splitlines()


def test_other_settings_of_the_limiter_give_no_memory(forging: Kubectl) -> None:
    conf = {"subPath": "limiter.conf"}
    change = with_link("/usr/local/gpupool", mount("/own/x/limiter.conf", **conf))
    said = output(forging, attempt(change))
    assert f"gpupool: /usr/local/gpupool/limiter.conf: {OVER}" in said
    assert NOTHING in said.splitlines()


@pytest.mark.parametrize("path", ["/own/x", "/own/x/self/mountinfo", "/own/x/self/fdinfo"])
def test_what_the_kernel_says_about_mounts_cannot_be_replaced(forging: Kubectl, path: str) -> None:
    """The limiter asks /proc. The runtime lets nobody mount there, and starts no such container."""
    part = LIMITS if path.endswith("mountinfo") else {}
    forging.apply(attempt(with_link("/proc", mount(path, **part))))
    state = ".status.containerStatuses[0].state"
    why = eventually(
        lambda: forging.field(f"{state}.terminated.message", "pod", "attempt"), LONGEST_S
    )
    assert "/proc" in why


def test_a_container_that_keeps_the_limiter_out_is_reported(forging: Kubectl) -> None:
    """Nothing in the container can prevent that: the limiter is not loaded (docs/limits.md). The
    agent sees it from the node."""
    pod = attempt(with_link("/etc", mount("/own/x/ld.so.preload", subPath="nothing")))
    pod["spec"]["containers"][0]["command"][-1] = STAY
    forging.apply(pod)
    eventually(lambda: PAST in forging.run("logs", "attempt").out.splitlines(), LONGEST_S)

    def said(reason: str) -> str:
        about = f"involvedObject.name=attempt,reason={reason}"
        return forging("get", "events", f"--field-selector={about}", "-o", "jsonpath={..message}")

    assert eventually(lambda: said("LimiterCovered"), LONGEST_S) == (
        "its program runs without its limit: something else is mounted over /etc/ld.so.preload "
        "in its container"
    )
    assert "8192 MiB" in eventually(lambda: said("GpuMemoryOveruse"), LONGEST_S)


@pytest.mark.skipif(bool(ELSEWHERE), reason="needs an image with links")
def test_a_volume_that_a_link_leads_under_the_limit_file_gives_no_memory(kubectl: Kubectl) -> None:
    """The runtime mounts shorter paths first, so the limit file is mounted inside the volume."""
    said = output(kubectl, attempt(with_image(LINKED, empty("/etc-link"))))
    assert f"gpupool: /etc/gpupool/limits: {INSIDE}" in said
    assert NOTHING in said.splitlines()


@pytest.mark.parametrize(
    "change",
    [
        message("/etc/gpupool/limits"),
        message("/proc/self/root/etc/gpupool/limits"),
        mount("/etc/../etc/gpupool/limits", **LIMITS),
        mount("/proc/1/root/etc/ld.so.preload", **LIMITS),
        mount("/var/run/gpupool"),
        empty("/etc"),
    ],
)
def test_admission_refuses_what_it_can_see(forging: Kubectl, change: Change) -> None:
    said = forging.refused("apply", "-f", "-", stdin=stream_of(attempt(change)))
    assert "denied the request: spec.containers[0]." in said
    assert ": wanted a path that " in said


def test_no_container_that_is_added_later_gets_the_volumes(kubectl: Kubectl) -> None:
    pod = gpu_pod("share", RESOURCE_GPU_MEM, 1)
    kubectl.apply(pod)
    added = {
        "name": "later",
        "image": IMAGE,
        "volumeMounts": [{"name": "gpupool-region-0", "mountPath": "/region"}],
    }
    said = kubectl.refused(
        *("patch", "pod", "share", "--subresource=ephemeralcontainers", "--patch"),
        stream_of({"spec": {"ephemeralContainers": [added]}}).removeprefix("---\n"),
    )
    assert "wanted a volume that is not gpupool's own, found gpupool-region-0" in said
