"""The devices of this container, as TensorFlow's module of the same name lists them.

Names, fields and text are TensorFlow's; the values come from the CUDA driver that the container
sees, so a container with a share of a card sees the memory of its share.
"""

import secrets
from dataclasses import dataclass, field

from . import _cuda

_MIB = 1024 * 1024
_CPU_BYTES = 256 * _MIB  # what TensorFlow says of every CPU


@dataclass(frozen=True)
class Locality:
    bus_id: int = 0
    numa_node: int = 0

    def __str__(self) -> str:
        lines = [f"  bus_id: {self.bus_id}\n"] if self.bus_id else []
        return "".join(["locality {\n", *lines, "}\n"])


@dataclass(frozen=True)
class DeviceAttributes:
    name: str
    device_type: str
    memory_limit: int
    locality: Locality
    incarnation: int = field(default_factory=lambda: secrets.randbits(63))
    physical_device_desc: str = ""

    def __str__(self) -> str:
        described = f'physical_device_desc: "{self.physical_device_desc}"\n'
        return (
            f'name: "{self.name}"\n'
            f'device_type: "{self.device_type}"\n'
            f"memory_limit: {self.memory_limit}\n"
            f"{self.locality}"
            f"incarnation: {self.incarnation}\n"
            f"{described if self.physical_device_desc else ''}"
        )

    __repr__ = __str__


def list_local_devices(session_config: object = None) -> list[DeviceAttributes]:
    """The CPU, and every card that CUDA shows to this process."""
    cpu = DeviceAttributes("/device:CPU:0", "CPU", _CPU_BYTES, Locality())
    return [cpu, *(_described(card) for card in _cuda.cards())]


def _described(card: "_cuda.Card") -> DeviceAttributes:
    return DeviceAttributes(
        f"/device:GPU:{card.number}",
        "GPU",
        card.free - reserve(card.free),
        Locality(bus_id=1),
        physical_device_desc=(
            f"device: {card.number}, name: {card.name}, pci bus id: {card.bus_id}, "
            f"compute capability: {card.capability}"
        ),
    )


def reserve(free: int) -> int:
    """How much of the free memory TensorFlow 1 leaves to the system: a twentieth, or 300 MiB if
    that is more; of little memory, 225 MiB."""
    return 225 * _MIB if free < 2048 * _MIB else max(300 * _MIB, free // 20)
