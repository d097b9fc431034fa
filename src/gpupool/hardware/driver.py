"""What the agent wants to know of a node's NVIDIA driver, and how it asks.

`nvml.py` asks the machine's driver (or the simulated one, where its libraries were loaded), which a
process can do for one node only. `simulated.py` reads the state of a simulated node directly, so
that one process can serve hundreds. Both give the same look for the same node; a test compares.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol


class NoDriver(Exception):
    """There is none, or it does not answer; the text says which."""


class DriverReplaced(Exception):
    """The driver is newer than the library that this process has loaded: a new one must go on."""


@dataclass(frozen=True, slots=True)
class CardLook:
    index: int
    # A card that has fallen off the bus may not even say who it is: then these are empty.
    uuid: str = ""
    model: str = ""
    memory_mib: int = 0
    is_lost: bool = False
    links: tuple[tuple[int, int], ...] = ()  # as in core.gpu.Card
    numa: int = -1
    compute: tuple[int, int] = (0, 0)  # its compute capability
    is_split: bool = False  # MIG mode is on
    ecc_uncorrected: int = 0  # memory errors since the card was last reset
    outside_mib: int = 0  # used, and not by programs that compute


class Xid(NamedTuple):
    """An error that the driver reported. `uuid` is empty when it does not say of which card."""

    uuid: str
    number: int


class ProgramUse(NamedTuple):
    """Memory of a card that a process holds, by its pid as this process sees it."""

    pid: int
    uuid: str
    used_mib: int


@dataclass(frozen=True, slots=True)
class Look:
    version: str  # of the driver: 550.163.01
    cuda: int  # the newest CUDA that it runs: 12040 for 12.4
    boot: str  # another one after a restart of the machine: all its cards were reset
    cards: tuple[CardLook, ...]  # by index
    xids: tuple[Xid, ...] = ()  # since the look before


class Driver(Protocol):
    async def look(self) -> Look:
        """Raises NoDriver, DriverReplaced."""

    async def uses(self) -> tuple[ProgramUse, ...]:
        """Of all cards. Raises NoDriver."""

    async def close(self) -> None: ...
