"""NvmlDriver: reads the cards of this machine through NVML.

NVML is global to the process. It is initialised when the first look finds a driver. It is called in
a thread, because a broken card can block a call for long. While a call blocks, looks fail with
NoDriver.
"""

import asyncio
import ctypes
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pynvml

from gpupool.hardware.driver import CardLook, DriverReplaced, Look, NoDriver, ProgramUse, Xid

LONGEST_LOOK_S = 30.0
RENEW_S = 30.0

_MIB = 1 << 20
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SWITCH = 2  # nvmlIntNvLinkDeviceType_t
_LOST = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)
_MOST_XIDS = 256  # in one look; the rest comes with the next


class NvmlDriver:
    def __init__(self) -> None:
        self._session: _Session | None = None
        self._renew_s = 0.0  # from then on NVML may be initialised again if a card is missing
        self._most_cards = 0
        self._running: asyncio.Task[Look] | None = None

    async def look(self) -> Look:
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(asyncio.to_thread(self._look), name="nvml")
        try:
            async with asyncio.timeout(LONGEST_LOOK_S):
                # A thread cannot be cancelled. The next look joins the call that still runs, so
                # that no second thread blocks beside it.
                return await asyncio.shield(self._running)
        except TimeoutError:
            raise NoDriver(f"the NVIDIA driver did not answer in {LONGEST_LOOK_S:.0f} s") from None

    async def uses(self) -> tuple[ProgramUse, ...]:
        if self._session is None or self._running is None or not self._running.done():
            # A look that runs may shut NVML down under this call.
            raise NoDriver("the cards are just being looked at")
        try:
            return await asyncio.to_thread(_uses)
        except pynvml.NVMLError as error:
            raise NoDriver(_words(error)) from error

    async def close(self) -> None:
        # A call that still blocks uses the session; then NVML is left to the end of the process.
        if self._session is not None and (self._running is None or self._running.done()):
            self._session.end()
        self._session = None

    def _look(self) -> Look:
        try:
            if self._session is None:
                self._session = _Session()
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
            raise NoDriver(_words(error)) from error

    def _renew_if_missing(self, look: Look) -> None:
        """NVML shows a card that has come back only after it was initialised again."""
        answering = sum(not card.is_lost for card in look.cards)
        self._most_cards = max(self._most_cards, answering)
        # Not more often than every RENEW_S: a card that is gone for good stays missing.
        if answering < self._most_cards and time.monotonic() > self._renew_s:
            assert self._session is not None
            self._session.end()
            self._session = None


class _Session:
    """NVML from its initialisation to its shutdown. Every method may raise NVMLError."""

    def __init__(self) -> None:
        pynvml.nvmlInit()
        self._events: Any = None
        self._watched: dict[int, str] = {}  # address of a card's handle -> its uuid

    def look(self) -> Look:
        handles = [_or(None, pynvml.nvmlDeviceGetHandleByIndex, i) for i in _indexes()]
        addresses = _addresses(handles)
        cards = tuple(_card_look(i, handle, addresses) for i, handle in enumerate(handles))
        self._watch(zip(cards, handles, strict=True))
        return Look(
            version=pynvml.nvmlSystemGetDriverVersion(),
            cuda=_or(0, pynvml.nvmlSystemGetCudaDriverVersion_v2),
            boot=_boot_id(),
            cards=cards,
            xids=self._new_xids(),
        )

    def end(self) -> None:
        if self._events is not None:
            _or(None, pynvml.nvmlEventSetFree, self._events)
            self._events = None
        _or(None, pynvml.nvmlShutdown)

    def _watch(self, cards: Iterable[tuple[CardLook, Any]]) -> None:
        """Subscribes to the XIDs of new cards. A card that cannot report XIDs is still read."""
        for card, handle in cards:
            if not card.uuid or _address(handle) in self._watched:
                continue
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


def _uses() -> tuple[ProgramUse, ...]:
    found = []
    for handle in (_or(None, pynvml.nvmlDeviceGetHandleByIndex, i) for i in _indexes()):
        if handle is None:
            continue
        uuid = _or("", pynvml.nvmlDeviceGetUUID, handle)
        kinds = (
            pynvml.nvmlDeviceGetComputeRunningProcesses,
            pynvml.nvmlDeviceGetGraphicsRunningProcesses,
        )
        # A process that computes and draws is in both lists, with all its memory in each.
        held = {
            program.pid: program.usedGpuMemory
            for ask in kinds
            for program in _or([], ask, handle)
            if program.usedGpuMemory
        }
        found += [ProgramUse(pid, uuid, used // _MIB) for pid, used in held.items()]
    return tuple(found)


def _card_look(index: int, handle: Any, addresses: dict[str, int]) -> CardLook:
    if handle is None:
        return CardLook(index, is_lost=True)
    try:
        uuid = pynvml.nvmlDeviceGetUUID(handle)
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        model = pynvml.nvmlDeviceGetName(handle)
    except pynvml.NVMLError as error:
        if error.value in _LOST or error.value == pynvml.NVML_ERROR_UNKNOWN:
            return CardLook(index, is_lost=True)
        raise
    compute = _or((0, 0), pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    return CardLook(
        index,
        uuid,
        model,
        memory.total // _MIB,
        links=_links(index, handle, addresses),
        numa=_numa(handle),
        compute=(compute[0], compute[1]),
        is_split=_or((0, 0), pynvml.nvmlDeviceGetMigMode, handle)[0] == 1,
        ecc_uncorrected=_or(
            0,
            pynvml.nvmlDeviceGetTotalEccErrors,
            handle,
            pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
            # Since the last reset. The total over the card's life would keep a repaired card
            # unhealthy.
            pynvml.NVML_VOLATILE_ECC,
        ),
        outside_mib=_outside_mib(handle, memory.used),
    )


def _outside_mib(handle: Any, used: int) -> int:
    """Memory that no compute process holds. What the driver reserves for itself does not count:
    newer drivers tell it separately (nvmlMemory_v2)."""
    newer = _or(None, pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2)
    if newer is not None:
        used = newer.used
    programs = _or([], pynvml.nvmlDeviceGetComputeRunningProcesses, handle)
    held = [program.usedGpuMemory for program in programs]
    if None in held:  # this driver does not tell the memory of processes
        return 0
    return int(max(0, used - sum(held)) // _MIB)


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


def _words(error: pynvml.NVMLError) -> str:
    if error.value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
        return "there is no NVIDIA driver: libnvidia-ml.so.1 was not found"
    return f"the NVIDIA driver does not answer: {error}"
