"""What the agent needs from a node's NVIDIA driver: a protocol with two implementations.

A look is one complete reading of all cards. `nvml.py` asks the machine's driver through NVML (or
the simulated one, if its libraries are loaded); a process can do that for one node only.
`simulated.py` reads the state file of a simulated node directly, so that one process can serve
hundreds of nodes. Both give the same look for the same node; a test compares them.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from gpupool.core.readings import CardReading


class NoDriver(Exception):
    """There is no driver, or it does not answer; the text says which."""


class NotAnswering(NoDriver):
    """There is a driver, but it does not answer now: a call hangs, or every call fails."""


class DriverReplaced(Exception):
    """The driver was updated, and the library in this process is too old: restart the process."""


@dataclass(frozen=True, slots=True)
class CardLook:
    index: int
    # A card that has fallen off the bus may not even tell its uuid; then these are empty.
    uuid: str = ""
    model: str = ""
    memory_mib: int = 0
    is_lost: bool = False
    error: str = ""  # why the driver could not read this card; it is not lost by that
    links: tuple[tuple[int, int], ...] = ()  # as in core.gpu.Card
    numa: int = -1
    compute: tuple[int, int] = (0, 0)  # its compute capability
    is_split: bool = False  # MIG mode is on
    ecc_uncorrected: int = 0  # memory errors since the card was last reset
    outside_mib: int = 0  # in use, but by no compute process that the driver lists


class Xid(NamedTuple):
    """An error that the driver reported; `uuid` is empty when it does not name the card."""

    uuid: str
    number: int


class ProgramUse(NamedTuple):
    """How much memory of a card a process holds. `pid` is the number in our own pid namespace."""

    pid: int
    uuid: str
    used_mib: int


class Uses(NamedTuple):
    """What processes hold. Of a card that is not in `read`, nothing is known this time."""

    programs: tuple[ProgramUse, ...]
    read: frozenset[str]  # uuids of the cards whose processes the driver has listed
    # Of these cards it has listed a process without telling how much memory that holds.
    untold: frozenset[str] = frozenset()


NOTHING_READ = Uses((), frozenset())


class ProgramLoad(NamedTuple):
    """In which part of the time the kernels of a process ran on a card."""

    pid: int
    uuid: str
    sm_percent: int


class Loads(NamedTuple):
    """What processes computed. Of a card that is not in `told`, the driver does not tell it."""

    programs: tuple[ProgramLoad, ...]  # an idle process may be left out
    told: frozenset[str]  # uuids


@dataclass(frozen=True, slots=True)
class Look:
    version: str  # of the driver: 550.163.01
    cuda: int  # the newest CUDA that it runs: 12040 for 12.4
    boot: str  # changes when the machine reboots, which resets all cards
    cards: tuple[CardLook, ...]  # by index
    xids: tuple[Xid, ...] = ()  # those reported since the last look


class Driver(Protocol):
    async def look(self) -> Look:
        """Raises NoDriver, NotAnswering, DriverReplaced."""

    async def uses(self) -> Uses:
        """What processes hold of all cards. Raises NoDriver, NotAnswering."""

    async def readings(self) -> tuple[CardReading, ...]:
        """Of the cards that answer, without what containers hold. Raises NoDriver, NotAnswering."""

    async def loads(self, since_us: int) -> Loads:
        """What processes computed since then, in microseconds of the time of day; the driver may
        have forgotten what is older than some seconds. Raises NoDriver, NotAnswering."""

    async def context_mib(self) -> int:
        """What a process's first context takes of a card. Raises NotMeasured (context_memory)."""

    async def close(self) -> None: ...
