"""The stand-ins of the test-bed for NVIDIA's programs. Runs with all other tests, as any user."""

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gpupool.hardware.cdi import Specs
from gpupool.hardware.simdriver import NodeFiles, create_node, read_cards
from kubeclient.nri import messages as nri
from kubeclient.nri.plugin import Refused
from testbed import nvidia_runtime, unified_leaves
from testbed.containerd_runtime import Containerd
from testbed.nvidia_ctk import DRIVER, KIND, generate
from testbed.nvidia_nri import Injector
from testbed.story import V100

BOTH = [Containerd(), Containerd(is_v2=True)]


@pytest.fixture
def driver(tmp_path: Path) -> NodeFiles:
    return create_node(tmp_path / "driver", "node-1", [V100] * 4)


@pytest.fixture
def cdi(driver: NodeFiles, tmp_path: Path) -> Path:
    generate(driver, tmp_path / "cdi" / "nvidia.json")
    return tmp_path / "cdi" / "nvidia.json"


def uuids(driver: NodeFiles) -> list[str]:
    return [card.uuid for card in read_cards(driver)]


def container(visible: str) -> dict[str, Any]:
    return {
        "process": {"env": ["PATH=/bin", f"NVIDIA_VISIBLE_DEVICES={visible}"]},
        "mounts": [],
        "linux": {},
    }


def device_names(config: dict[str, Any]) -> list[str]:
    return [device["path"] for device in config["linux"].get("devices") or ()]


def test_the_runtime_brings_the_cards_that_the_variable_names(driver: NodeFiles, cdi: Path) -> None:
    spec, cards = json.loads(cdi.read_text()), uuids(driver)
    config = container(f"{cards[2]},{cards[0]}")
    nvidia_runtime.inject(config, spec)
    assert device_names(config) == ["/dev/nvidiactl", "/dev/nvidia2", "/dev/nvidia0"]
    assert [mount["destination"] for mount in config["mounts"]] == [DRIVER]
    every = container("all")
    nvidia_runtime.inject(every, spec)
    assert len(device_names(every)) == 5


@pytest.mark.parametrize("visible", ["", "void", "none"])
def test_the_runtime_leaves_other_containers_alone(cdi: Path, visible: str) -> None:
    config = container(visible)
    nvidia_runtime.inject(config, json.loads(cdi.read_text()))
    assert config == container(visible)


def test_the_runtime_records_what_it_was_given_and_runs_runc(
    driver: NodeFiles, cdi: Path, tmp_path: Path
) -> None:
    runc = tmp_path / "runc"
    runc.write_text('#!/bin/sh\necho "runc $@"\n')
    runc.chmod(0o755)
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "config.json").write_text(json.dumps(container(uuids(driver)[1])))
    program = nvidia_runtime.install(tmp_path, runc, cdi)
    words = ["--root", "/r", "create", "--bundle", str(bundle), "id"]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True)
    assert done.stdout == f"runc {' '.join(words)}\n"
    changed = json.loads((bundle / "config.json").read_text())
    assert device_names(changed) == ["/dev/nvidiactl", "/dev/nvidia1"]
    (line,) = nvidia_runtime.record_of(tmp_path).read_text().splitlines()
    assert json.loads(line)["env"]["NVIDIA_VISIBLE_DEVICES"] == uuids(driver)[1]
    (bundle / "config.json").write_text(json.dumps(container("GPU-nobodys")))
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "there is no card GPU-nobodys" in done.stderr


async def test_the_plugin_brings_the_cards_of_the_annotation(driver: NodeFiles, cdi: Path) -> None:
    plugin, uuid = Injector(Specs((cdi.parent,))), uuids(driver)[3]
    asks = {"nvidia.cdi.k8s.io/container.main": f"{KIND}={uuid}"}
    pod = nri.PodSandbox(annotations=asks)
    adjusted = await plugin.create(pod, nri.Container(name="main"))
    assert adjusted is not None
    assert adjusted.linux is not None
    assert {device.path for device in adjusted.linux.devices} == {"/dev/nvidia3", "/dev/nvidiactl"}
    assert await plugin.create(pod, nri.Container(name="other")) is None
    wrong = nri.PodSandbox(annotations={"nvidia.cdi.k8s.io/pod": f"{KIND}=GPU-nobodys"})
    with pytest.raises(Refused, match="unresolvable CDI devices"):
        await plugin.create(wrong, nri.Container(name="main"))


@pytest.mark.parametrize("runtime", BOTH, ids=["1.7", "2"])
def test_nvidias_runtime_is_known_only_where_it_should_be(
    runtime: Containerd, tmp_path: Path
) -> None:
    for is_known, is_default in ((False, False), (True, False), (True, True)):
        chosen = Containerd(runtime.is_v2, has_nvidia=is_known, runs_nvidia=is_default)
        text = chosen.config(tmp_path, Path("/runc"), Path("/nvidia"))
        plugins = tomllib.loads(text)["plugins"]
        names = ("io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime")
        found = plugins[names[runtime.is_v2]]["containerd"]
        assert found["default_runtime_name"] == ("nvidia" if is_default else "runc")
        assert ("nvidia" in found["runtimes"]) == is_known
        assert not plugins["io.containerd.nri.v1.nri"].get("disable")


def test_a_container_gets_a_leaf_before_it_starts_and_loses_it_at_the_end(tmp_path: Path) -> None:
    runc = tmp_path / "runc"
    runc.write_text(
        '#!/bin/sh\ncase "$*" in *create*) echo 4711 > PID;; esac\n'.replace(
            "PID", str(tmp_path / "pid")
        )
    )
    runc.chmod(0o755)
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    config = {"linux": {"cgroupsPath": "/top/kubepods/pod1/c1"}}
    (bundle / "config.json").write_text(json.dumps(config, separators=(",", ":")))
    hierarchy = tmp_path / "unified"
    hierarchy.mkdir()
    program = unified_leaves.install(tmp_path, runc, hierarchy)
    create: list[str | Path] = ["create", "--bundle", bundle, "--pid-file", tmp_path / "pid", "c1"]
    subprocess.run([program, *create], check=True)
    leaf = hierarchy / "top" / "kubepods" / "pod1" / "c1"
    assert (leaf / "cgroup.procs").read_text() == "4711\n"
    (leaf / "cgroup.procs").unlink()  # a cgroup's files go with it
    subprocess.run([program, "delete", "c1"], check=True)
    assert not leaf.parent.exists()
