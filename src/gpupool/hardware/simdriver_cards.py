"""The models of card that can be simulated, with the figures that a real driver reports.

Figures are those that NVIDIA publishes; memory is what nvidia-smi shows, as in the catalogue of
machines. A model that is not in the table gets the figures of a Tesla T4.
"""

from dataclasses import dataclass, replace
from enum import Enum


class Topology(Enum):
    """How the cards of one machine are joined by NVLink."""

    NONE = "none"
    CUBE_MESH = "cube-mesh"  # eight cards, six links each, in two groups of four
    SWITCH = "switch"  # every link goes to a switch: all cards reach one another


class Architecture(Enum):
    """With NVML's numbers."""

    KEPLER = 2
    MAXWELL = 3
    PASCAL = 4
    VOLTA = 5
    TURING = 6
    AMPERE = 7
    ADA = 8
    HOPPER = 9


@dataclass(frozen=True, slots=True)
class CardProfile:
    name: str
    memory_mib: int
    architecture: Architecture
    compute: tuple[int, int]  # compute capability
    multiprocessors: int
    cores: int
    memory_bus_bits: int
    l2_kib: int
    clocks_mhz: tuple[int, int]  # graphics and memory, the highest
    power_w: tuple[int, int, int]  # lowest limit, limit, idle
    pci_device_id: int  # device and vendor, as NVML has it
    pcie_generation: int
    topology: Topology = Topology.NONE
    links: int = 0  # NVLink
    mig_instances: int = 0  # 0: the card has no MIG


# Cube mesh: the peers of each card's six links, as machines with eight V100 have them.
CUBE_MESH: tuple[tuple[int, ...], ...] = (
    (1, 2, 3, 3, 4, 4),
    (0, 2, 2, 3, 5, 5),
    (0, 1, 1, 3, 3, 6),
    (0, 0, 1, 2, 2, 7),
    (0, 0, 5, 6, 7, 7),
    (1, 1, 4, 6, 6, 7),
    (2, 4, 5, 5, 7, 7),
    (3, 4, 4, 5, 6, 6),
)

_A = Architecture
_T = Topology

PROFILES: dict[str, CardProfile] = {
    row.name: row
    for row in (
        CardProfile(
            *("Tesla K80", 11441, _A.KEPLER, (3, 7), 13, 2496, 384, 1536),
            *((875, 2505), (100, 149, 26), 0x102D10DE, 3),
        ),
        CardProfile(
            *("Tesla M40", 12209, _A.MAXWELL, (5, 2), 24, 3072, 384, 3072),
            *((1112, 3004), (180, 250, 16), 0x17FD10DE, 3),
        ),
        CardProfile(
            *("Tesla M40 24GB", 22945, _A.MAXWELL, (5, 2), 24, 3072, 384, 3072),
            *((1112, 3004), (180, 250, 16), 0x17FD10DE, 3),
        ),
        CardProfile(
            *("Tesla P4", 7611, _A.PASCAL, (6, 1), 20, 2560, 256, 2048),
            *((1531, 3003), (60, 75, 7), 0x1BB310DE, 3),
        ),
        CardProfile(
            *("Tesla P100-PCIE-16GB", 16280, _A.PASCAL, (6, 0), 56, 3584, 4096, 4096),
            *((1328, 715), (125, 250, 26), 0x15F810DE, 3),
        ),
        CardProfile(
            *("Tesla V100-SXM2-16GB", 16130, _A.VOLTA, (7, 0), 80, 5120, 4096, 6144),
            *((1530, 877), (150, 300, 38), 0x1DB110DE, 3, _T.CUBE_MESH, 6),
        ),
        CardProfile(
            *("Tesla V100-SXM2-32GB", 32510, _A.VOLTA, (7, 0), 80, 5120, 4096, 6144),
            *((1530, 877), (150, 300, 41), 0x1DB510DE, 3, _T.CUBE_MESH, 6),
        ),
        CardProfile(
            *("Tesla T4", 15109, _A.TURING, (7, 5), 40, 2560, 256, 4096),
            *((1590, 5001), (60, 70, 9), 0x1EB810DE, 3),
        ),
        CardProfile(
            *("NVIDIA A10", 22731, _A.AMPERE, (8, 6), 72, 9216, 384, 6144),
            *((1695, 6251), (100, 150, 16), 0x223610DE, 4),
        ),
        CardProfile(
            *("NVIDIA A100-SXM4-40GB", 40537, _A.AMPERE, (8, 0), 108, 6912, 5120, 40960),
            *((1410, 1215), (100, 400, 46), 0x20B010DE, 4, _T.SWITCH, 12, 7),
        ),
        CardProfile(
            *("NVIDIA A100-SXM4-80GB", 81251, _A.AMPERE, (8, 0), 108, 6912, 5120, 40960),
            *((1410, 1593), (100, 400, 61), 0x20B210DE, 4, _T.SWITCH, 12, 7),
        ),
        CardProfile(
            *("NVIDIA L4", 23034, _A.ADA, (8, 9), 58, 7424, 192, 49152),
            *((2040, 6251), (40, 72, 12), 0x27B810DE, 4),
        ),
        CardProfile(
            *("NVIDIA L20", 46068, _A.ADA, (8, 9), 92, 11776, 384, 98304),
            *((2520, 9001), (100, 275, 31), 0x26BA10DE, 4),
        ),
        CardProfile(
            *("NVIDIA H100 80GB HBM3", 81559, _A.HOPPER, (9, 0), 132, 16896, 5120, 51200),
            *((1980, 2619), (200, 700, 68), 0x233010DE, 5, _T.SWITCH, 18, 7),
        ),
        CardProfile(
            *("NVIDIA H20", 97871, _A.HOPPER, (9, 0), 78, 9984, 6144, 61440),
            *((1980, 2619), (200, 500, 72), 0x232910DE, 5, _T.SWITCH, 18, 7),
        ),
    )
}
_UNKNOWN = "Tesla T4"  # whose figures a model that is not in the table gets


def card_profile(name: str, memory_mib: int) -> CardProfile:
    """A card with that name and memory; its other figures are from the table."""
    return replace(PROFILES.get(name, PROFILES[_UNKNOWN]), name=name, memory_mib=memory_mib)


def link_peers(profile: CardProfile, index: int, count: int) -> tuple[int | None, ...]:
    """For each NVLink of a card: the index of the card at its other end, or None for a switch.
    Links that lead nowhere are left out."""
    match profile.topology:
        case Topology.NONE:
            return ()
        case Topology.SWITCH:
            return (None,) * (profile.links if count > 1 else 0)
        case Topology.CUBE_MESH:
            peers = CUBE_MESH[index] if index < len(CUBE_MESH) else ()
            return tuple(peer for peer in peers if peer < count)
