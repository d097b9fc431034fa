"""The limiter is installed with the measured memory of a context, and the agent says if not."""

import os
from pathlib import Path

import pytest

from gpupool.agent.audit import TOLERATED_MIB, UNMEASURED_CONTEXT_MIB, overuses
from gpupool.agent.limiter import LimiterPlace, install_limiter
from gpupool.contract.inventory import inventory_of
from gpupool.hardware import limiter, selinux
from gpupool.hardware.context_memory import NotMeasured
from gpupool.hardware.driver import ProgramUse
from gpupool.hardware.simulated import SimulatedDriver
from tests.agent.nodes import V100, Node
from tests.agent.test_shrinks import pod

MEM = "aliyun.com/gpu-mem"
SHARED = {"ack.node.gpu.schedule": "cgpu"}


class Measured(SimulatedDriver):
    context = 312
    problem = ""

    async def context_mib(self) -> int:
        if self.problem:
            raise NotMeasured(self.problem)
        return self.context


@pytest.fixture
def driver(tmp_path: Path) -> Measured:
    return Measured(tmp_path / "state")


def configured(place: LimiterPlace, mounts: tuple[object, ...]) -> str:
    directory = Path(mounts[0].host_path)  # type: ignore[attr-defined]
    assert directory.parent == place.directory
    return (directory / limiter.CONFIG).read_text()


async def test_the_measured_memory_of_a_context_is_installed(
    tmp_path: Path, driver: Measured
) -> None:
    place = LimiterPlace(tmp_path / "limiter", "/usr/lib")
    installed = await install_limiter(place, driver)
    assert (installed.context_mib, installed.problem) == (312, "")
    assert "context_mib=312\n" in configured(place, installed.mounts)


async def test_the_last_good_figure_is_kept_while_it_cannot_be_measured(
    tmp_path: Path, driver: Measured
) -> None:
    place = LimiterPlace(tmp_path / "limiter", "/usr/lib")
    driver.problem = "libcuda.so.1 is missing"
    first = await install_limiter(place, driver)
    assert first.context_mib is None
    assert first.problem == (
        "the memory of a CUDA context could not be measured: libcuda.so.1 is missing. "
        "In isolated shares, contexts are not counted"
    )
    driver.problem = ""
    await install_limiter(place, driver)
    driver.problem = "it hangs"
    last = await install_limiter(place, driver)
    assert last.context_mib == 312
    assert "context_mib=312\n" in configured(place, last.mounts)
    assert last.problem.endswith("contexts are counted as 312 MiB, as before")


@pytest.mark.parametrize("damaged", [b"", b"many\n", b"\xff", b"9" * 5000])
async def test_a_damaged_last_figure_is_not_used(
    tmp_path: Path, driver: Measured, damaged: bytes
) -> None:
    place = LimiterPlace(tmp_path, "/usr/lib")
    (tmp_path / "context-mib").write_bytes(damaged)
    driver.problem = "it hangs"
    installed = await install_limiter(place, driver)
    assert installed.mounts
    assert installed.context_mib is None


async def test_a_directory_that_cannot_be_written_gives_no_limiter(
    tmp_path: Path, driver: Measured
) -> None:
    (tmp_path / "file").write_text("")
    installed = await install_limiter(LimiterPlace(tmp_path / "file" / "limiter"), driver)
    assert installed.mounts == ()
    assert installed.problem.startswith("the limiter cannot be installed: ")


async def test_files_that_selinux_keeps_from_containers_are_not_given_out(
    tmp_path: Path, driver: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    label = tmp_path / "label"
    label.write_text("system_u:system_r:container_t:s0:c1,c2\n")
    monkeypatch.setattr(selinux, "_OWN_LABEL", label)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "setxattr", refuse)
    place = LimiterPlace(tmp_path / "limiter", "/usr/lib")
    refused = await install_limiter(place, driver)
    assert refused.mounts == ()
    assert "Operation not permitted" in refused.problem
    labelled: list[str] = []
    monkeypatch.setattr(os, "setxattr", lambda path, *_, **__: labelled.append(path.name))
    allowed = await install_limiter(place, driver)
    assert allowed.problem == ""
    assert {limiter.LIBRARY, *limiter.STAND_INS, "ld.so.preload"} < set(labelled)


def test_a_label_of_apparmor_is_none_of_selinux(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selinux, "_OWN_LABEL", tmp_path / "missing")
    assert not selinux.is_on()
    (tmp_path / "label").write_text("cri-containerd.apparmor.d (enforce)\n")
    monkeypatch.setattr(selinux, "_OWN_LABEL", tmp_path / "label")
    assert not selinux.is_on()


async def test_the_agent_measures_again_until_it_succeeds(node: Node, tmp_path: Path) -> None:
    await node.create(SHARED)
    node.insert([V100])
    driver = Measured(node.files.state)
    driver.problem = "libcuda.so.1 is missing"
    place = LimiterPlace(tmp_path / "limiter", "/usr/lib")
    async with (
        node.kubelet.running(),
        node.agent(driver=driver, install=place, install_again_s=0.02),
    ):
        said = await node.wait_event("LimiterIncomplete")
        assert "libcuda.so.1 is missing" in said
        driver.problem = ""
        await node.wait(lambda: (place.directory / "context-mib").exists())


async def test_the_first_inventory_waits_for_the_limiter(node: Node, tmp_path: Path) -> None:
    """An agent that restarts must not say for a moment that shares are not isolated."""
    await node.create(SHARED)
    node.insert([V100])
    place = LimiterPlace(tmp_path / "limiter", "/usr/lib")
    async with node.agent(driver=Measured(node.files.state), install=place):

        async def text() -> str:
            found = (await node.get())["metadata"].get("annotations") or {}
            return str(found.get("gpupool.io/inventory", ""))

        await node.wait(text)
        assert inventory_of(await text()).isolates is True


def test_where_contexts_are_not_counted_each_process_may_have_one() -> None:
    shared, gib = pod(), 1024
    allowed = gib + TOLERATED_MIB + 51
    uses = [
        ProgramUse(1, "GPU-a", allowed),
        ProgramUse(2, "GPU-a", 2 * UNMEASURED_CONTEXT_MIB),
    ]
    assert overuses([shared], uses, lambda _: "u")
    assert overuses([shared], uses, lambda _: "u", counts_contexts=False) == []
    more = [*uses[1:], ProgramUse(1, "GPU-a", allowed + 1)]
    assert overuses([shared], more, lambda _: "u", counts_contexts=False)
