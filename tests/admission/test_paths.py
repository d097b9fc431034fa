"""Paths that a pod names in its containers: none may lead to a file of the limiter."""

from collections.abc import Callable

import pytest

from gpupool.admission.review import review_paths
from kubeclient.objects import Obj
from tests.admission.pods import admitted, container, pod, refusal, review

RESERVED = (
    "/etc/gpupool",
    "/etc/gpupool/limits",
    "etc/gpupool/",
    "//etc/gpupool",
    "/etc//gpupool/./limits",
    "/etc/../run/gpupool",
    "/run/gpupool/region-1",
    "/var/run/gpupool",
    "/var/./run/../run/gpupool/region-1",
    "/usr/local/gpupool/libcuda.so.1",
    "/etc/ld.so.preload",
    "/../../etc/ld.so.preload",
)
THROUGH_PROC = (
    "/proc/self/root/etc/gpupool/limits",
    "/proc/1/root/etc/ld.so.preload",
    "/proc/self/cwd/etc/gpupool",
    "/proc/thread-self/root/x",
    "/x/../proc/self/root",
    "/dev/fd/3",
    "/dev/stdin/x",
)
FREE = (
    "/etc/gpupool-of-mine",
    "/etc/ld.so.preload.d",
    "/data",
    "/run",
    "/usr/local",
    "/usr/local/nvidia",
    "/procs",
    "/dev/shm",
    "/dev/termination-log",
)


def mounting(path: str, volume: str = "mine") -> Obj:
    return container(gpu_mem=3) | {"volumeMounts": [{"name": volume, "mountPath": path}]}


# By the field in the message: the container that names the path there.
FIELDS: dict[str, Callable[[str], Obj]] = {
    "volumeMounts[0].mountPath": mounting,
    "volumeDevices[0].devicePath": lambda path: (
        container(gpu_mem=3) | {"volumeDevices": [{"name": "disk", "devicePath": path}]}
    ),
    "terminationMessagePath": lambda path: container(gpu_mem=3) | {"terminationMessagePath": path},
    "workingDir": lambda path: container(gpu_mem=3) | {"workingDir": path},
}


def complaint(reviewed: Obj) -> str:
    """What the webhook says about the pod as it will be stored; empty: it is allowed."""
    response = review_paths(review(reviewed))["response"]
    return "" if response["allowed"] else response["status"]["message"]


@pytest.mark.parametrize("path", RESERVED)
@pytest.mark.parametrize("field", FIELDS)
def test_no_field_names_a_path_of_the_limiter(field: str, path: str) -> None:
    said = (
        f"spec.containers[0].{field}: wanted a path that gpupool does not use itself, found {path}"
    )
    assert refusal(pod(FIELDS[field](path))) == said
    assert complaint(pod(FIELDS[field](path))) == said


@pytest.mark.parametrize("path", THROUGH_PROC)
@pytest.mark.parametrize("field", FIELDS)
def test_no_field_names_a_path_through_which_all_others_are_reached(field: str, path: str) -> None:
    said = refusal(pod(FIELDS[field](path)))
    assert said.startswith(f"spec.containers[0].{field}: wanted a path that no link of the kernel")
    assert said.endswith(f"found {path}")


@pytest.mark.parametrize("path", FREE)
@pytest.mark.parametrize("field", FIELDS)
def test_other_paths_stay(field: str, path: str) -> None:
    made = admitted(pod(FIELDS[field](path)))
    assert complaint(made) == ""
    found = made["spec"]["containers"][0]
    assert path in str(found[field.partition("[")[0]])


@pytest.mark.parametrize("path", ["/etc", "/", "/x/.."])
@pytest.mark.parametrize("field", FIELDS)
def test_nothing_is_mounted_under_the_limit_file(field: str, path: str) -> None:
    given = pod(FIELDS[field](path))
    if field == "workingDir":
        assert admitted(given)
        return
    assert refusal(given) == (
        f"spec.containers[0].{field}: wanted a path that does not contain /etc/gpupool, which "
        f"gpupool uses itself, found {path}"
    )


def test_init_containers_with_a_share_are_checked() -> None:
    given = pod(container("main"), initContainers=[mounting("/etc/gpupool")])
    assert refusal(given).startswith("spec.initContainers[0].volumeMounts[0].mountPath: ")


@pytest.mark.parametrize("given", [container(gpu=1), container()])
def test_a_container_without_a_share_mounts_where_it_likes(given: Obj) -> None:
    mount = {"name": "mine", "mountPath": "/etc/gpupool"}
    other = container("share", gpu_mem=1)
    assert admitted(pod(given | {"volumeMounts": [mount]}, other))


@pytest.mark.parametrize("volume", ["gpupool-limits-0", "gpupool-region-0"])
@pytest.mark.parametrize("kind", ["containers", "initContainers", "ephemeralContainers"])
def test_no_other_container_mounts_a_volume_of_the_limiter(volume: str, kind: str) -> None:
    """A container could write into the count of another one."""
    made = admitted(pod(container(gpu_mem=3)))
    other = container("other") | {"volumeMounts": [{"name": volume, "mountPath": "/data"}]}
    made["spec"].setdefault(kind, []).append(other)
    number = len(made["spec"][kind]) - 1
    assert complaint(made) == (
        f"spec.{kind}[{number}].volumeMounts[0].name: wanted a volume that is not gpupool's own, "
        f"found {volume}"
    )


def test_a_container_mounts_the_volumes_of_its_own_limiter_only() -> None:
    both = admitted(pod(container("a", gpu_mem=1), container("b", gpu_mem=9)))
    assert complaint(both) == ""
    own = both["spec"]["containers"][0]["volumeMounts"][0]
    assert own == {"name": "gpupool-limits-0", "mountPath": "/etc/gpupool", "readOnly": True}
    own["name"] = "gpupool-limits-1"
    assert complaint(both).startswith("spec.containers[0].volumeMounts[0].")


def test_a_pod_may_pass_admission_twice() -> None:
    once = admitted(pod(container("a", gpu_mem=1), container("b", gpu_mem=9)))
    assert complaint(once) == ""
    response = review_paths(review(once, once))["response"]
    assert response["allowed"]
