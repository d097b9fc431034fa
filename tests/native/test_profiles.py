"""NVML shows every simulated model with the properties of its profile."""

import json
from pathlib import Path

import pytest

from gpupool.hardware.simdriver import create_node
from gpupool.hardware.simdriver_cards import PROFILES, Topology, card_profile, link_peers
from gpupool.local.config.catalogue import catalogue
from tests.native.simulated import V100, python

SHOW = """
import json, pynvml as n
n.nvmlInit()
cards = []
for index in range(n.nvmlDeviceGetCount()):
    card = n.nvmlDeviceGetHandleByIndex(index)
    try:
        mig = n.nvmlDeviceGetMaxMigDeviceCount(card) if n.nvmlDeviceGetMigMode(card) else 0
    except n.NVMLError_NotSupported:
        mig = 0
    cards.append({
        "name": n.nvmlDeviceGetName(card),
        "memory_mib": n.nvmlDeviceGetMemoryInfo(card).total >> 20,
        "architecture": n.nvmlDeviceGetArchitecture(card),
        "compute": n.nvmlDeviceGetCudaComputeCapability(card),
        "cores": n.nvmlDeviceGetNumGpuCores(card),
        "bus_bits": n.nvmlDeviceGetMemoryBusWidth(card),
        "clocks": [n.nvmlDeviceGetMaxClockInfo(card, kind) for kind in (0, 2)],
        "power": n.nvmlDeviceGetPowerManagementLimit(card) // 1000,
        "pci": n.nvmlDeviceGetPciInfo(card).pciDeviceId,
        "mig": mig,
    })
print(json.dumps(cards))
"""


def test_nvml_shows_what_the_profile_says(tmp_path: Path) -> None:
    profiles = list(PROFILES.values())
    files = create_node(tmp_path / "node", "node-1", profiles)
    assert json.loads(python(files, SHOW)) == [
        {
            "name": profile.name,
            "memory_mib": profile.memory_mib,
            "architecture": profile.architecture.value,
            "compute": list(profile.compute),
            "cores": profile.cores,
            "bus_bits": profile.memory_bus_bits,
            "clocks": list(profile.clocks_mhz),
            "power": profile.power_w[1],
            "pci": profile.pci_device_id,
            "mig": profile.mig_instances,
        }
        for profile in profiles
    ]


def test_every_card_of_the_catalogue_has_a_profile_with_its_memory() -> None:
    for model in catalogue().gpu_models.values():
        assert PROFILES[model.name].memory_mib == model.memory_mib


def test_an_unknown_model_keeps_its_name_and_memory(tmp_path: Path) -> None:
    profile = card_profile("Example X1", 4096)
    files = create_node(tmp_path / "node", "node-1", [profile])
    (card,) = json.loads(python(files, SHOW))
    assert (card["name"], card["memory_mib"]) == ("Example X1", 4096)


@pytest.mark.parametrize("count", range(1, 9))
def test_every_link_of_the_mesh_has_two_ends(count: int) -> None:
    peers = [link_peers(PROFILES[V100], index, count) for index in range(count)]
    for one in range(count):
        assert one not in peers[one]
        for other in range(count):
            assert peers[one].count(other) == peers[other].count(one)


def test_only_cards_with_links_have_peers() -> None:
    for profile in PROFILES.values():
        assert bool(link_peers(profile, 0, 8)) == (profile.topology is not Topology.NONE)
        assert (profile.links > 0) == (profile.topology is not Topology.NONE)
