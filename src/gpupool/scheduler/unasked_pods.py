"""UnaskedPods: pods for our profile of kube-scheduler about which it does not ask.

A kube-scheduler with an older configuration has no such profile. Then nobody looks at these pods,
and nobody says so. One that works through a long queue asks about other pods meanwhile.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from gpupool.contract.names import EXTENDER_PROFILE
from gpupool.contract.overlooked import MENDS, PATIENCE_S, is_unseen
from gpupool.scheduler.kube_scheduler_config import is_managed
from kubeclient.objects import Obj

NOT_ASKED = "NotAsked"  # the reason of the event
NOT_ASKED_MESSAGE = (
    f"kube-scheduler has not asked about this pod for {PATIENCE_S:.0f} s, nor about another one of"
    f" its profile {EXTENDER_PROFILE}. {MENDS[EXTENDER_PROFILE]}"
)
_AT_ONCE = 100  # an Event costs the API server as much as a Binding
_MOST_EARLY = 1000


@dataclass(slots=True)
class _Waiting:
    about: Obj  # the fields of the pod that an event needs
    since_s: float
    is_told: bool = False  # or there is nothing to tell: it was asked about


class UnaskedPods:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}  # by uid
        self._asked_s = clock()  # when it asked last, about any pod of the profile
        # Its watch may be ahead of ours: uids of pods that it has asked about and we do not know.
        self._early: dict[str, None] = {}

    def pod_changed(self, old: Obj | None, new: Obj | None) -> None:
        if old is not None and (new is None or old["metadata"]["uid"] != new["metadata"]["uid"]):
            self._waiting.pop(old["metadata"]["uid"], None)
        if new is None:
            return
        uid = new["metadata"]["uid"]
        if _is_of_the_profile(new) and is_unseen(new) and is_managed(new):
            is_asked = uid in self._early
            self._waiting.setdefault(uid, _Waiting(_about(new), self._clock(), is_asked))
        else:
            self._waiting.pop(uid, None)
        self._early.pop(uid, None)

    def asked(self, pod: Obj) -> None:
        if _is_of_the_profile(pod):
            self._asked_s = self._clock()
            # Kept, or a later change of the pod would let it wait anew.
            uid = pod["metadata"].get("uid") or ""
            if known := self._waiting.get(uid):
                known.is_told = True
            else:
                self._early[uid] = None
                if len(self._early) > _MOST_EARLY:
                    del self._early[next(iter(self._early))]

    def take(self) -> list[Obj]:
        """Those that have waited for too long, each of them once."""
        due_s = self._clock() - PATIENCE_S
        if self._asked_s > due_s:
            return []
        late = (each for each in self._waiting.values() if each.since_s <= due_s)
        found = list(islice((each for each in late if not each.is_told), _AT_ONCE))
        for each in found:
            each.is_told = True
        return [each.about for each in found]


def _is_of_the_profile(pod: Obj) -> bool:
    return bool((pod.get("spec") or {}).get("schedulerName") == EXTENDER_PROFILE)


def _about(pod: Obj) -> Obj:
    fields = ("name", "namespace", "uid", "resourceVersion")
    metadata = {key: pod["metadata"].get(key, "") for key in fields}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
