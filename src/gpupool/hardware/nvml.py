"""NvmlDriver: reads the cards of this machine through NVML.

NVML is global to the process. It is initialised when the first look finds a driver. It is called in
a thread, because a broken card can block a call for long. While a call blocks, looks fail with
NotAnswering. An error of one card is that card's: the others are read as always.
"""

import asyncio
import ctypes
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pynvml

from gpupool.core.readings import CardReading
from gpupool.hardware.context_memory import measure_context_mib
from gpupool.hardware.driver import (
    CardLook,
    DriverReplaced,
    Loads,
    Look,
    NoDriver,
    NotAnswering,
    Uses,
    Xid,
)
from gpupool.hardware.nvml_gpm import Gpm
from gpupool.hardware.nvml_processes import (
    NOT_LOADED,
    OF_THE_DRIVER,
    IsOfPod,
    loads,
    outside_mib,
    uses,
)
from gpupool.hardware.nvml_readings import readings

Read = TypeVar("Read")

LONGEST_LOOK_S = 30.0
RENEW_S = 30.0
# What does not change from one second to the next is asked this often. On eight cards with eighteen
# links each, the links alone are four hundred calls.
STEADY_S = 60.0

_MIB = 1 << 20
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SWITCH = 2  # nvmlIntNvLinkDeviceType_t
# A card that fell off the bus also gives UNKNOWN.
_LOST = (
    pynvml.NVML_ERROR_GPU_IS_LOST,
    pynvml.NVML_ERROR_RESET_REQUIRED,
    pynvml.NVML_ERROR_UNKNOWN,
)
_MOST_XIDS = 256  # in one look; the rest comes with the next


class NvmlDriver:
    def __init__(
        self, is_of_pod: IsOfPod = lambda _: False, load: Callable[[], None] = lambda: None
    ) -> None:
        """`is_of_pod`: whether a process belongs to a pod. `load`: what to do before NVML is looked
        for, if its library is not where the loader looks."""
        self._is_of_pod = is_of_pod
        self._load = load
        self._session: _Session | None = None
        self._renew_s = 0.0  # from then on NVML may be initialised again if a card is missing
        self._most_cards = 0
        self._looking: asyncio.Task[Look] | None = None  # until its result was taken
        self._listing: asyncio.Task[Uses] | None = None  # the last one
        self._reading: asyncio.Task[tuple[CardReading, ...]] | None = None  # the last one
        self._weighing: asyncio.Task[Loads] | None = None  # the last one

    async def look(self) -> Look:
        if self._looking is None:
            await self._idle()
            self._looking = asyncio.create_task(asyncio.to_thread(self._look), name="nvml-look")
        # A thread cannot be cancelled. After a timeout the next call takes the result of the look
        # that still runs: an XID is reported once, and that look may have read it.
        await _end_of(self._looking)
        done, self._looking = self._looking, None
        return done.result()

    async def uses(self) -> Uses:
        await self._idle()
        if self._session is None:
            raise NoDriver("no driver was found yet")
        self._listing = asyncio.create_task(asyncio.to_thread(uses), name="nvml-uses")
        return await _result_of(self._listing)

    async def readings(self) -> tuple[CardReading, ...]:
        await self._idle()
        if self._session is None:
            raise NoDriver("no driver was found yet")
        call = asyncio.to_thread(readings, self._session.gpm)
        self._reading = asyncio.create_task(call, name="nvml-readings")
        return await _result_of(self._reading)

    async def loads(self, since_us: int) -> Loads:
        await self._idle()
        if self._session is None:
            raise NoDriver("no driver was found yet")
        call = asyncio.to_thread(loads, since_us)
        self._weighing = asyncio.create_task(call, name="nvml-loads")
        return await _result_of(self._weighing)

    async def context_mib(self) -> int:
        return await asyncio.to_thread(measure_context_mib)

    async def _idle(self) -> None:
        """Waits until no thread is in NVML: a look may shut NVML down under another call."""
        while running := [call for call in self._calls() if not call.done()]:
            await _end_of(running[0])

    def _calls(self) -> list[asyncio.Task[Any]]:
        calls = (self._looking, self._listing, self._reading, self._weighing)
        return [call for call in calls if call is not None]

    async def close(self) -> None:
        # A call that still blocks uses the session; then NVML is left to the end of the process.
        if self._session is not None and all(call.done() for call in self._calls()):
            self._session.end()
        self._session = None

    def _look(self) -> Look:
        try:
            if self._session is None:
                self._load()
                self._session = _Session(self._is_of_pod)
                self._renew_s = time.monotonic() + RENEW_S
            look = self._session.look()
            self._renew_if_missing(look)
            return look
        except pynvml.NVMLError as error:
            if self._session is not None:
                self._session.end()
                self._session = None
            if error.value == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
                raise DriverReplaced(str(error)) from error
            raise _no_driver(error) from error

    def _renew_if_missing(self, look: Look) -> None:
        """NVML shows a card that has come back only after it was initialised again."""
        answering = sum(not card.is_lost for card in look.cards)
        self._most_cards = max(self._most_cards, answering)
        # Not more often than every RENEW_S: a card that is gone for good stays missing.
        if answering < self._most_cards and time.monotonic() > self._renew_s:
            assert self._session is not None
            self._session.end()
            self._session = None


async def _end_of(call: asyncio.Task[Any]) -> None:
    """Waits until the call has ended. Raises NotAnswering."""
    await asyncio.wait({call}, timeout=LONGEST_LOOK_S)
    if not call.done():
        raise NotAnswering(f"the NVIDIA driver did not answer in {LONGEST_LOOK_S:.0f} s")


async def _result_of(call: asyncio.Task[Read]) -> Read:
    """Raises NoDriver, NotAnswering."""
    await _end_of(call)
    try:
        return call.result()
    except pynvml.NVMLError as error:
        raise _no_driver(error) from error


class _Session:
    """NVML from its initialisation to its shutdown. Every method may raise NVMLError."""

    def __init__(self, is_of_pod: IsOfPod) -> None:
        pynvml.nvmlInit()
        self._is_of_pod = is_of_pod
        self.gpm = Gpm()
        self._events: Any = None
        self._watched: dict[int, str] = {}  # address of a card's handle -> its uuid
        self._steady: dict[str, CardLook] = {}  # by uuid: what is asked only every STEADY_S
        self._ask_steady_s = 0.0
        self._lost: list[int] = []  # indexes, in the last look

    def look(self) -> Look:
        found = [_answer(index) for index in _indexes()]
        handles = [None if isinstance(each, CardLook) else each.handle for each in found]
        # Links to a lost card are gone, and those to one that is back are there again.
        lost = [each.index for each in found if isinstance(each, CardLook) and each.is_lost]
        if lost != self._lost or time.monotonic() >= self._ask_steady_s:
            self._steady = {}
            self._lost, self._ask_steady_s = lost, time.monotonic() + STEADY_S
        cards = tuple(
            each if isinstance(each, CardLook) else self._card_look(index, each, handles)
            for index, each in enumerate(found)
        )
        for card, handle in zip(cards, handles, strict=True):
            self._watch(card, handle)
        return Look(
            version=pynvml.nvmlSystemGetDriverVersion(),
            cuda=_or(0, pynvml.nvmlSystemGetCudaDriverVersion_v2),
            boot=_boot_id(),
            cards=cards,
            xids=self._new_xids(),
        )

    def _card_look(self, index: int, answer: "_Answer", handles: list[Any]) -> CardLook:
        handle, uuid = answer.handle, answer.uuid
        steady = self._steady.get(uuid)
        if steady is None or steady.index != index:
            try:
                steady = self._steady[uuid] = _steady_look(index, answer, handles)
            except pynvml.NVMLError as error:
                return _unread(index, uuid, error)
        return replace(
            steady,
            ecc_uncorrected=_or(
                0,
                pynvml.nvmlDeviceGetTotalEccErrors,
                handle,
                pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                # Since the last reset. The total over the card's life would keep a repaired card
                # unhealthy.
                pynvml.NVML_VOLATILE_ECC,
            ),
            outside_mib=outside_mib(handle, answer.memory.used, self._is_of_pod),
        )

    def end(self) -> None:
        if self._events is not None:
            _or(None, pynvml.nvmlEventSetFree, self._events)
            self._events = None
        self.gpm.end()
        _or(None, pynvml.nvmlShutdown)

    def _watch(self, card: CardLook, handle: Any) -> None:
        """Subscribes to the XIDs of a new card. A card that cannot report XIDs is still read."""
        if not card.model or _address(handle) in self._watched:
            return
        if self._events is None:
            self._events = pynvml.nvmlEventSetCreate()
        kinds = pynvml.nvmlEventTypeXidCriticalError
        _or(None, pynvml.nvmlDeviceRegisterEvents, handle, kinds, self._events)
        self._watched[_address(handle)] = card.uuid

    def _new_xids(self) -> tuple[Xid, ...]:
        found: list[Xid] = []
        while self._events is not None and len(found) < _MOST_XIDS:
            event = _or(None, pynvml.nvmlEventSetWait_v2, self._events, 0)
            if event is None:
                break
            if event.eventType == pynvml.nvmlEventTypeXidCriticalError:
                found.append(Xid(self._watched.get(_address(event.device), ""), event.eventData))
        return tuple(found)


class _Answer(NamedTuple):
    handle: Any
    uuid: str
    memory: Any  # nvmlMemory_t


def _answer(index: int) -> _Answer | CardLook:
    """What every look asks of a card; a CardLook if it cannot be read."""
    uuid = ""
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        uuid = pynvml.nvmlDeviceGetUUID(handle)
        return _Answer(handle, uuid, pynvml.nvmlDeviceGetMemoryInfo(handle))
    except pynvml.NVMLError as error:
        return _unread(index, uuid, error)


def _unread(index: int, uuid: str, error: pynvml.NVMLError) -> CardLook:
    if error.value in OF_THE_DRIVER:
        raise error
    if error.value in _LOST:
        return CardLook(index, is_lost=True)
    return CardLook(index, uuid, error=str(error))


def _steady_look(index: int, answer: _Answer, handles: list[Any]) -> CardLook:
    handle = answer.handle
    compute = _or((0, 0), pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    return CardLook(
        index,
        answer.uuid,
        pynvml.nvmlDeviceGetName(handle),
        answer.memory.total // _MIB,
        links=_links(index, handle, _addresses(handles)),
        numa=_numa(handle),
        compute=(compute[0], compute[1]),
        is_split=_or((0, 0), pynvml.nvmlDeviceGetMigMode, handle)[0] == 1,
    )


def _links(index: int, handle: Any, addresses: dict[str, int]) -> tuple[tuple[int, int], ...]:
    counts: dict[int, int] = {}
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        state = _or(None, pynvml.nvmlDeviceGetNvLinkState, handle, link)
        if state is None:  # the card has no further links
            break
        if not state:
            continue
        if _or(0, pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, link) == _SWITCH:
            # Through a switch, each link reaches all other cards.
            ends = [other for other in addresses.values() if other != index]
        else:
            remote = _or(None, pynvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, link)
            end = addresses.get(_text(remote.busId)) if remote is not None else None
            ends = [end] if end is not None else []
        for other in ends:
            counts[other] = counts.get(other, 0) + 1
    return tuple(sorted(counts.items()))


def _addresses(handles: list[Any]) -> dict[str, int]:
    """PCI address of each card that answers -> its index."""
    found = (
        (_or(None, pynvml.nvmlDeviceGetPciInfo, handle), index)
        for index, handle in enumerate(handles)
        if handle is not None
    )
    return {_text(pci.busId): index for pci, index in found if pci is not None}


def _numa(handle: Any) -> int:
    scope = pynvml.NVML_AFFINITY_SCOPE_NODE
    nodes = _or(None, pynvml.nvmlDeviceGetMemoryAffinity, handle, 1, scope)
    if nodes is None or not nodes[0]:
        return -1
    # The lowest bit that is set: a card can be near several NUMA nodes.
    return int(nodes[0] & -nodes[0]).bit_length() - 1


def _indexes() -> range:
    return range(pynvml.nvmlDeviceGetCount())


def _or(default: Any, ask: Callable[..., Any], *args: Any) -> Any:
    """What the driver answers; `default` when it does not know or does not support the call."""
    try:
        return ask(*args)
    except pynvml.NVMLError:
        return default


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _no_driver(error: pynvml.NVMLError) -> NoDriver:
    if error.value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
        return NoDriver("there is no NVIDIA driver: libnvidia-ml.so.1 was not found")
    kind = NoDriver if error.value in NOT_LOADED else NotAnswering
    return kind(f"the NVIDIA driver does not answer: {error}")
