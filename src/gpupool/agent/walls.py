"""Walls: sets the driver's memory limits on containers, checks that they are in force, clears them.

For whoever starts containers (an NRI plugin, a hook):

    walls.hold(container, {"GPU-…": 3226})    # raises WallRefused: do not start it
    walls.release(container, ["GPU-…"])       # before its cgroup is removed

`sweep` makes limits agree with what the API server says: after a resize, after a restart of the
agent, and for containers that nobody set limits for. It keeps no state that matters, and may be
called at any time. Calls block, and may be made from any thread; one is carried out at a time.
"""

import contextlib
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from gpupool.agent.leaves import Leaf, Leaves
from gpupool.agent.wall_plan import Leak, Shares, leaks, limits_of, plan
from gpupool.hardware.memory_limits import (
    NO_LIMITS,
    CardLimits,
    LimitsRefused,
    LimitsUnsupported,
    MemoryLimits,
)
from kubeclient.objects import Obj

log = logging.getLogger(__name__)

# A pod may be started before this agent has heard of it: what seems left over must seem so for a
# while. The same for reservations, which change while containers start.
PATIENCE_S = 30.0
_MIB = 1 << 20

Thing = TypeVar("Thing")


class WallRefused(Exception):
    """The driver does not hold this container; the text says why."""


class Sweep(NamedTuple):
    held: dict[str, set[str]]  # by uid of the pod: ids of containers that the driver holds
    used: dict[str, dict[str, dict[str, int]]]  # by uid, container id and card: MiB, rounded up
    problems: dict[str, str]  # by uid: why the driver does not hold it


class Walls:
    def __init__(self, limits: CardLimits, leaves: Leaves) -> None:
        self._limits = limits
        self._leaves = leaves
        self._turn = threading.Lock()
        self._over: dict[Leaf, float] = {}  # since when they seem to be left over
        self._leaked: dict[tuple[str, Leak], float] = {}  # by card

    def work(self, uuid: str) -> bool:
        """Whether the driver has memory limits. Only setting one tells: reading answers the same
        where none is set and where there are none."""
        try:
            with self._turn, self._leaves.probe() as cgroup:
                self._set(cgroup, {uuid: 1})
                self._limits.set(cgroup, uuid, NO_LIMITS)
        except (LimitsRefused, WallRefused, OSError) as error:
            level = logging.DEBUG if isinstance(error, LimitsUnsupported) else logging.WARNING
            log.log(level, "no memory limits of the driver", extra={"error": str(error)})
            return False
        return True

    def set_before_start(self, cgroup: str, shares: Shares) -> None:
        """Holds the container's cgroup to these shares, from now on. Raises WallRefused: then
        nothing is set."""
        with self._turn:
            try:
                self._set(cgroup, shares)
            except (LimitsRefused, WallRefused) as error:
                self._clear(cgroup, shares)
                raise WallRefused(str(error)) from error

    def hold(self, container: str, shares: Shares) -> None:
        """The same for a container by its id, between its making and the start of its program.
        Raises WallRefused."""
        try:
            leaf = self._leaf(container)
        except OSError as error:
            raise WallRefused(f"the cgroups of containers cannot be listed: {error}") from error
        if leaf is None:
            raise WallRefused(f"container {container[:12]} has no cgroup of a pod")
        self.set_before_start(leaf.path, shares)

    def release(self, container: str, uuids: Iterable[str]) -> None:
        """`cleared`, for a container by its id."""
        with contextlib.suppress(OSError):
            leaf = self._leaf(container)
            if leaf is not None:
                self.cleared(leaf.path, uuids)

    def _leaf(self, container: str) -> Leaf | None:
        return next((leaf for leaf in self._leaves.all() if leaf.container == container), None)

    def cleared(self, cgroup: str, uuids: Iterable[str]) -> None:
        """Takes the limits away while the cgroup is still there: the driver then also takes the
        guarantee off its ancestors. Never fails, since `sweep` repairs what is left."""
        with self._turn:
            self._clear(cgroup, uuids)

    def sweep(self, pods: Sequence[Obj], uuids: Sequence[str], now_s: float) -> Sweep:
        """`uuids`: the cards of the node. Raises OSError if the cgroups cannot be listed."""
        leaves = self._leaves.all()
        wanted, over = plan(pods, leaves)
        found = Sweep({}, {}, {})
        for leaf, shares in wanted.items():
            try:
                with self._turn:
                    used = self._hold(leaf.path, shares, uuids)
            except (LimitsRefused, WallRefused) as error:
                found.problems[leaf.pod] = str(error)
                continue
            if shares:
                found.held.setdefault(leaf.pod, set()).add(leaf.container)
                found.used.setdefault(leaf.pod, {})[leaf.container] = used
        self._clear_left_over(over, uuids, now_s)
        self._repair(frozenset(leaf.path for leaf in leaves), uuids, now_s)
        return found

    # -- with the turn held ----------------------------------------------------------------

    def _set(self, cgroup: str, shares: Shares) -> None:
        for uuid, mib in shares.items():
            self._set_one(cgroup, uuid, limits_of(mib))

    def _set_one(self, cgroup: str, uuid: str, limits: MemoryLimits) -> None:
        """Reads the limits back: NVML answers the same where limits are unset and unsupported."""
        self._limits.set(cgroup, uuid, limits)
        found = self._limits.get(cgroup, uuid).limits
        if found != limits:
            raise WallRefused(
                f"{cgroup}: wanted a limit of {limits.hard // _MIB} MiB on card {uuid}, found "
                + (f"{found.hard // _MIB} MiB" if found.are_set else "none")
            )

    def _hold(self, cgroup: str, shares: Shares, uuids: Iterable[str]) -> dict[str, int]:
        """What is used of each card."""
        used = {}
        for uuid in {*uuids, *shares}:
            wanted = limits_of(shares[uuid]) if uuid in shares else NO_LIMITS
            found = self._limits.get(cgroup, uuid)
            if found.limits != wanted:
                self._set_one(cgroup, uuid, wanted)
                found = self._limits.get(cgroup, uuid)
            if uuid in shares:
                used[uuid] = -(-found.used // _MIB)
        return used

    def _clear(self, cgroup: str, uuids: Iterable[str]) -> None:
        for uuid in uuids:
            # The cgroup may be gone: then its limits are, too.
            with contextlib.suppress(LimitsRefused):
                if self._limits.get(cgroup, uuid).limits.are_set:
                    self._limits.set(cgroup, uuid, NO_LIMITS)

    # -- what is left over -----------------------------------------------------------------

    def _clear_left_over(self, over: Iterable[Leaf], uuids: Sequence[str], now_s: float) -> None:
        self._over = {leaf: self._over.get(leaf, now_s) for leaf in over}
        for leaf in _since(self._over, now_s):
            self.cleared(leaf.path, uuids)
            self._leaves.forget(leaf)
            del self._over[leaf]

    def _repair(self, leaves: frozenset[str], uuids: Sequence[str], now_s: float) -> None:
        """Lowers ancestors that still reserve memory for containers that are gone. The deepest
        first: the driver then lowers those above it."""
        tops = self._leaves.tops()
        seen = {(uuid, leak) for uuid in uuids for leak in self._leaks(tops, leaves, uuid)}
        self._leaked = {each: self._leaked.get(each, now_s) for each in seen}
        depth = sorted(_since(self._leaked, now_s), key=lambda each: -each[1].path.count("/"))
        for uuid, leak in depth:
            with self._turn, contextlib.suppress(LimitsRefused):
                now = self._limits.get(leak.path, uuid).limits
                # Another one below it may have been lowered just now, and this one with it.
                if now.soft == leak.reserved:
                    self._limits.set(leak.path, uuid, MemoryLimits(leak.needed, now.hard))
                    log.warning("reservation repaired", extra={"cgroup": leak.path, "card": uuid})

    def _leaks(self, tops: Iterable[str], leaves: frozenset[str], uuid: str) -> list[Leak]:
        def soft(path: str) -> int:
            return self._limits.get(path, uuid).limits.soft

        try:
            return leaks(tops, leaves, self._leaves.below, soft)
        except (LimitsRefused, OSError):  # the next sweep looks again
            return []


def _since(since: Mapping[Thing, float], now_s: float) -> list[Thing]:
    """Those that have lasted for long enough."""
    return [each for each, first_s in since.items() if now_s - first_s >= PATIENCE_S]
