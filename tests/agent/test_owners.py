"""Processes, their cgroups, and the pods and containers that these name."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gpupool.agent import owners
from gpupool.agent.owners import container_by_cgroup, container_names, owner_by_cgroup

Write = Callable[[str], object]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Of the cgroups of process 1."""
    monkeypatch.setattr(owners, "_PROC", str(tmp_path))
    (tmp_path / "1").mkdir()
    return (tmp_path / "1" / "cgroup").write_text


@pytest.mark.parametrize(
    "cgroup",
    [
        "0::/kubepods.slice/kubepods-burstable.slice/"
        "kubepods-burstable-pod0a1b2c3d_0a1b_0a1b_0a1b_0a1b2c3d4e5f.slice/cri-containerd-1.scope",
        "4:memory:/kubepods/besteffort/pod0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f/1",
    ],
)
def test_a_cgroup_names_its_pod(cgroup: str, write: Write) -> None:
    write(cgroup)
    assert owner_by_cgroup(1) == "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"


def test_a_process_that_has_ended_belongs_to_no_pod() -> None:
    assert owner_by_cgroup(2**30) == ""


ID, OTHER = "ab" * 32, "cd" * 32
POD = "pod0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"


@pytest.mark.parametrize(
    "cgroup",
    [
        f"0::/kubepods.slice/kubepods-{POD.replace('-', '_')}.slice/cri-containerd-{ID}.scope",
        f"0::/kubepods.slice/kubepods-{POD.replace('-', '_')}.slice/crio-{ID}.scope/container",
        f"4:memory:/kubepods/besteffort/{POD}/{ID}",
        f"0::/kubepods/{POD}/{ID}/mine/{POD}/{OTHER}",  # the rest was made in the container
    ],
)
def test_a_cgroup_names_its_container(cgroup: str, write: Write) -> None:
    write(cgroup)
    assert container_by_cgroup(1) == ID


@pytest.mark.parametrize(
    "cgroup",
    [
        "0::/user.slice",
        f"0::/kubepods/{POD}",
        f"0::/kubepods/{POD}/mine/{ID}",
        # CRI-O's own program beside the container, which has the mounts of the node.
        f"0::/kubepods.slice/kubepods-{POD.replace('-', '_')}.slice/crio-conmon-{ID}.scope",
        f"4:memory:/kubepods/besteffort/{POD}/crio-conmon-{ID}",
    ],
)
def test_a_cgroup_without_a_container_names_none(cgroup: str, write: Write) -> None:
    write(cgroup)
    assert container_by_cgroup(1) == ""


def test_containers_of_every_kind_are_found_by_their_ids() -> None:
    def statuses(name: str, id: str | None) -> list[dict[str, object]]:
        return [{"name": name, "containerID": id}]

    status = {
        "containerStatuses": [*statuses("main", "containerd://1"), *statuses("waits", None)],
        "initContainerStatuses": statuses("init", "containerd://2"),
        "ephemeralContainerStatuses": statuses("debug", "cri-o://3"),
    }
    assert container_names({"status": status}) == {"1": "main", "2": "init", "3": "debug"}
    assert container_names({}) == {}
