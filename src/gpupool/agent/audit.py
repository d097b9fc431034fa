"""Which pods hold more of a card than their share, according to the driver.

The limiter runs inside the container, where a program could get around it. The audit does not
depend on it: the driver knows how much memory each process holds, and the node knows by the
process's cgroup which pod it belongs to. No program in a container can change either.

The driver also counts memory that the limiter does not see (code, stacks). So a share may be
exceeded by a small tolerance, and by more for a short time. If the memory of a context could not be
measured, the limiter does not count contexts either, and each process is allowed one.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

from gpupool.agent.owners import Owner, owner_names
from gpupool.contract.allocation import pod_allocation
from gpupool.core.gpu import Isolation
from gpupool.hardware.driver import ProgramUse
from kubeclient.objects import Obj

TOLERATED_MIB = 256
_TOLERATED_PERCENT = 5
UNMEASURED_CONTEXT_MIB = 512
# A single reading while a program starts or frees memory proves nothing. Both must be reached: when
# readings fail, seconds go by without them.
LASTING_S = 10.0
LASTING_READINGS = 3


class Overuse(NamedTuple):
    uid: str
    uuid: str
    card: int  # index of the card; -1: the pod has no share of it
    used_mib: int
    share_mib: int

    @property
    def words(self) -> str:
        name = f"card {self.card} ({self.uuid})" if self.card >= 0 else f"card {self.uuid}"
        return f"its programs hold {self.used_mib} MiB of {name}, its share is {self.share_mib} MiB"


def audited(pods: Iterable[Obj]) -> list[Obj]:
    """The pods that share cards. A pod with whole cards cannot take too much."""
    return [
        pod
        for pod in pods
        if any(gpus.isolation is not Isolation.WHOLE for gpus in pod_allocation(pod).containers)
    ]


def overuses(
    pods: Iterable[Obj],
    uses: Iterable[ProgramUse],
    owner: Owner,
    *,
    counts_contexts: bool = True,
) -> list[Overuse]:
    """`counts_contexts`: the limiter counts the memory of contexts."""
    allowed_mib = 0 if counts_contexts else UNMEASURED_CONTEXT_MIB
    known = {name: pod for pod in pods for name in owner_names(pod)}
    held: Counter[tuple[str, str]] = Counter()
    contexts: Counter[tuple[str, str]] = Counter()
    for use in uses:
        pod = known.get(owner(use.pid))
        if pod is not None:
            # By pod, not by container: the cgroup reliably names the pod only. `_share` adds up its
            # containers.
            held[pod["metadata"]["uid"], use.uuid] += use.used_mib
            contexts[pod["metadata"]["uid"], use.uuid] += allowed_mib
    found = []
    for (uid, uuid), used in held.items():
        # `owner_names` lists the uid, so `known` finds the pod by it.
        share, index = _share(known[uid], uuid)
        tolerated = TOLERATED_MIB + share * _TOLERATED_PERCENT // 100 + contexts[uid, uuid]
        if used > share + tolerated:
            found.append(Overuse(uid, uuid, index, used, share))
    return found


def _share(pod: Obj, uuid: str) -> tuple[int, int]:
    """The pod's share of the card in MiB, and the card's index; 0 and -1 if it has no share."""
    mib, index = 0, -1
    for gpus in pod_allocation(pod).containers:
        for share in gpus.shares:
            if share.uuid == uuid:
                mib, index = mib + share.memory_mib, share.index
    return mib, index


class _Seen(NamedTuple):
    since_s: float
    readings: int


class Lasting:
    """Leaves out overuse that has not yet lasted for LASTING_S."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], _Seen] = {}  # by uid of the pod and uuid of the card

    def __contains__(self, over: tuple[str, str]) -> bool:
        return over in self._seen

    def of(
        self, found: Iterable[Overuse], read: Collection[str], uids: Collection[str], now_s: float
    ) -> list[Overuse]:
        """`read`: the cards that could be looked at, `uids`: the pods that there are."""
        listed = list(found)
        # What a failed reading did not show has not ended. A pod that kept to its share in a good
        # reading starts from zero.
        seen = {
            over: known
            for over, known in self._seen.items()
            if over[1] not in read and over[0] in uids
        }
        for each in listed:
            since_s, readings = self._seen.get((each.uid, each.uuid), _Seen(now_s, 0))
            seen[each.uid, each.uuid] = _Seen(since_s, readings + 1)
        self._seen = seen
        return [each for each in listed if _lasts(seen[each.uid, each.uuid], now_s)]


def _lasts(seen: _Seen, now_s: float) -> bool:
    return seen.readings >= LASTING_READINGS and now_s - seen.since_s >= LASTING_S
