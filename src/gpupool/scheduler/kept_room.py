"""KeptRoom: room that is freed is kept for pods and groups that have waited for long.

The engine chooses (`engine/reservations.py`). Here is what it needs to know: how long pods have
waited and run, which of them wait, and when one is placed or gone. Only for pods with GPUs.

Of this only the sentence is in the API that the condition of a pod has (`kept_words.py`). A new
leader keeps the room that these name, and sees by their age how long the other pods have waited.
"""

import time
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from math import inf

from gpupool.contract.names import LABEL_KEEP_ROOM
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement
from gpupool.engine.future_room import Place
from gpupool.engine.gang import size_of
from gpupool.engine.kinds import kind_of
from gpupool.engine.last_places import LEFT_S, FreedNodes, is_last_place
from gpupool.engine.node_state import Held
from gpupool.engine.patience import Patience
from gpupool.engine.policies.policy import Policy
from gpupool.engine.reservation import Reservation, Waiting
from gpupool.engine.reservations import Reservations
from gpupool.engine.run_times import RunTimes
from gpupool.scheduler.groups import Group, Groups, Key
from gpupool.scheduler.kept_words import Told, told, words_of
from gpupool.scheduler.pending import Pending
from kubeclient.times import seconds_of, stamp

LOOK_S = 5.0  # between two looks at who waits
# A search for room goes through all pods that run: so many of them at a time, which takes some
# 15 ms, and decisions in between.
PODS_AT_ONCE = 2_000
_STEP_S = 0.02

Job = tuple[Hashable, Sequence[Pending]]  # a pod, or as many pods as their group needs


class KeptRoom:
    def __init__(
        self,
        cluster: ClusterModel,
        clock: Callable[[], float],
        now: Callable[[], float] = time.time,
        victims: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """`clock` is monotonic; `now` is the time of day, in which the API speaks.

        `victims`: uids of pods that were evicted for others, which get their room.
        """
        self._cluster = cluster
        self._clock = clock
        self._now = now
        self._reservations = Reservations(cluster, victims)
        self._patience = Patience()
        self._run_times = RunTimes()
        self._began_s: dict[str, tuple[Hashable, float]] = {}  # kind, and when it got its node
        self._key_of: dict[str, Hashable] = {}  # of the pods for which room is kept
        self._said: dict[str, tuple[float, str]] = {}  # by uid: when it was made, and the words
        self._look_s = 0.0
        self._due_now: list[Waiting] = []  # as of the beginning of the search
        self.is_on = False  # whether anybody looks who has waited for long
        self._freed_nodes = FreedNodes()
        self._places_s = inf  # when the next place is not left to larger pods any more
        self.made = 0  # so far

    def __len__(self) -> int:
        return len(self._reservations)

    def __contains__(self, uid: str) -> bool:
        return uid in self._key_of

    # -- what happens to pods ----------------------------------------------------------------

    def began(self, pod: PodRequest) -> None:
        """The pod has a node."""
        if pod.gpus and pod.uid not in self._began_s:
            started_s = seconds_of(pod.started) if pod.started else None
            ran_s = max(0.0, self._now() - started_s) if started_s is not None else 0.0
            self._began_s[pod.uid] = (kind_of(pod), self._clock() - ran_s)

    def placed(self, pod: Pending, policy: Policy) -> bool:
        """A node was found for a pod that waited. Whether room of its own was given up for it."""
        self._patience.placed([pod.request], self.waited_s(pod))
        self.began(pod.request)
        dropped = self.drop(pod.uid)
        for key in (pod.uid, _key_of(pod.group)):
            self._reservations.idle.started(key)
        self._reservations.backfilled(pod.uid, policy)
        return dropped

    def gone(self, uid: str) -> None:
        """In the same step as its release: what it held is not free for all."""
        kind_and_time = self._began_s.pop(uid, None)
        if kind_and_time is not None:
            kind, began_s = kind_and_time
            self._run_times.ended(kind, self._clock() - began_s)
        self._reservations.gone(uid)

    def freed(self, node: str, policy: Policy) -> None:
        """After `gone`, and before another pod gets what is free on the node now."""
        now_s = self._clock()
        # Else, where a pod ends every few seconds, no look would ever find that the time is over.
        if now_s < self._places_s:
            self._freed_nodes.ended(node, now_s)
        for seat in self._reservations.settle(node, policy) if self._reservations else ():
            self._said.pop(seat.pod.uid, None)

    def unplaced(self, uid: str) -> None:
        """Its Binding was refused: it has not run."""
        self._began_s.pop(uid, None)

    def drop(self, uid: str) -> bool:
        """No room is kept any more for this pod, nor for its group. Whether any was."""
        key = self._key_of.get(uid)
        if key is None:
            return False
        self._key_of = {each: of for each, of in self._key_of.items() if of != key}
        self._said = {each: said for each, said in self._said.items() if each in self._key_of}
        return self._reservations.drop(key)

    def drop_all(self) -> None:
        for kept in self._reservations.all():
            self._reservations.drop(kept.waiting.key)
        self._key_of, self._said = {}, {}

    def believe(self, places: Sequence[Place], policy: Policy) -> None:
        """Keep the room that the scheduler, another program, says it keeps."""
        for kept in self._reservations.restore(places, policy, self._ends, self._clock()):
            self._key_of |= {pod.uid: kept.waiting.key for pod in kept.waiting.pods}

    def take_over(self, jobs: Iterator[Job], policy: Policy) -> list[str]:
        """Keep the room that an earlier leader kept. Its pods, for which room is kept now."""
        found = [(seats, job) for job in jobs if (seats := _told(job)) is not None]
        uids: list[str] = []
        for seats, job in sorted(found, key=lambda each: each[0][0].since):
            uids += self._take_over(job, seats, policy)
        return uids

    def _take_over(self, job: Job, seats: Sequence[Told], policy: Policy) -> list[str]:
        key, pods = job
        waiting, now_s = self._waiting(key, pods), self._clock()
        since_s = seconds_of(seats[0].since)
        # Not before it waited: a clock may be years off.
        made_s = now_s - max(0.0, self._now() - since_s) if since_s is not None else now_s
        made_s = max(made_s, waiting.since_s)
        places = [
            Place(pod.request, seat.node, seat.cards) for pod, seat in zip(pods, seats, strict=True)
        ]
        expected_s = made_s + seats[0].within_s
        kept = self._reservations.take_over(waiting, places, policy, self._ends, made_s, expected_s)
        if kept is None:
            return []
        uids = [pod.uid for pod in pods]
        self._key_of |= dict.fromkeys(uids, key)
        # The same words: others would be written again.
        self._said |= {
            uid: (kept.made_s, seat.sentence) for uid, seat in zip(uids, seats, strict=True)
        }
        return uids

    # -- decisions ---------------------------------------------------------------------------

    def below(self, priority: int) -> list[str]:
        """Pods that have kept room which a pod of this priority may take."""
        return [
            seat.pod.uid
            for kept in self._reservations.all()
            if kept.waiting.priority < priority
            for seat in kept.seats
        ]

    def waiting_for(self, leaving: Collection[str]) -> list[str]:
        """Pods whose kept room is that of pods which now leave for others; one of each group."""
        return [
            kept.waiting.pods[0].uid
            for kept in self._reservations.all()
            if any(not seat.leaving.isdisjoint(leaving) for seat in kept.seats)
        ]

    def usable_until_then(self, pod: PodRequest) -> list[str]:
        """Pods whose room this one may use, because it will have ended before they need it."""
        if not self._reservations:
            return []
        end_s = self._clock() + self._run_times.at_most_s(kind_of(pod))
        usable = self._reservations.open_until(end_s, pod.priority)
        return [seat.pod.uid for kept in usable for seat in kept.seats]

    def leaves_place(self, pod: Pending, found: Placement, policy: Policy) -> bool:
        """Whether the pod leaves what was found to larger pods. Then it is tried again in time.

        Only where those that have waited for long get room, and to nobody who got it by that. Pods
        without GPUs never get any, so they do not leave one place after the other.
        """
        request, for_all_s = pod.request, self._freed_nodes.for_all_s(found.node)
        if (
            not self.is_on
            or pod.uid in self._key_of
            or request.priority > 0
            or self._clock() >= for_all_s
            or request.labels.get(LABEL_KEEP_ROOM) == "false"
            or (not request.gpus and self.waited_s(pod) >= LEFT_S)
            or not is_last_place(self._cluster, request, policy, found)
        ):
            return False
        self._places_s = min(self._places_s, for_all_s)
        return True

    def _places_lapse(self) -> bool:
        """Whether a place is for all now that somebody has left to larger pods."""
        now_s = self._clock()
        self._freed_nodes.forget_old(now_s)
        if now_s < self._places_s:
            return False
        self._places_s = inf  # those that leave another place say it again
        return True

    # -- who gets room -----------------------------------------------------------------------

    def due_s(self) -> float:
        return self._look_s

    def look(self, jobs: Callable[[], Iterator[Job]], policy: Policy) -> tuple[list[str], bool]:
        """At most every few seconds, or the next step of a search. New pods for which room is kept;
        whether room became free.
        """
        now_s, goes_on = self._clock(), self._reservations.is_looking
        if now_s < self._look_s:
            return [], False
        freed = False
        if not goes_on:
            over = [kept for kept in self._reservations.all() if self._is_broken(kept, policy)]
            over += self._reservations.lapsed(now_s)
            dropped = [self.drop(kept.waiting.pods[0].uid) for kept in over]
            freed = self._places_lapse() or any(dropped)
            self._due_now = [] if self._reservations.is_full() else self._due(jobs())
        found: list[Reservation] = []
        # While better room is looked for, nobody new has a turn: each look has one search of each.
        if self._reservations.is_considering or not goes_on:
            found = self._reservations.consider(
                self._due_now, policy, self._ends, now_s, PODS_AT_ONCE
            )
        made = self._still_wanted(found, jobs()) if goes_on and found else found
        moved = False
        if not found and not self._reservations.is_considering:
            moved = self._reservations.move_late(policy, self._ends, now_s, PODS_AT_ONCE)
        self._look_s = now_s + (_STEP_S if self._reservations.is_looking else LOOK_S)
        for kept in made:
            self._key_of |= {pod.uid: kept.waiting.key for pod in kept.waiting.pods}
        self.made += len(made)
        return [pod.uid for kept in made for pod in kept.waiting.pods], moved or freed

    def _still_wanted(self, made: Sequence[Reservation], jobs: Iterator[Job]) -> list[Reservation]:
        """Without those whose pods were placed or went while room was looked for."""
        wait = {key: {pod.request.uid for pod in pods} for key, pods in jobs}
        wanted = []
        for kept in made:
            if wait.get(kept.waiting.key) == {pod.uid for pod in kept.waiting.pods}:
                wanted.append(kept)
            else:
                self._reservations.drop(kept.waiting.key)
        return wanted

    def _is_broken(self, kept: Reservation, policy: Policy) -> bool:
        return not self._reservations.still_holds(kept.waiting.key, policy)

    def _due(self, jobs: Iterator[Job]) -> list[Waiting]:
        """Those that have waited for longer than is usual, the most important and oldest first."""
        due = []
        for key, pods in jobs:
            if not all(_wants_room(pod.request) for pod in pods):
                continue
            waiting = self._waiting(key, pods)
            if self._clock() - waiting.since_s > self._patience.of(waiting.pods):
                due.append(waiting)
        return sorted(due, key=lambda waiting: (-waiting.priority, waiting.since_s))

    def _waiting(self, key: Hashable, pods: Sequence[Pending]) -> Waiting:
        since_s = self._clock() - min(self.waited_s(pod) for pod in pods)
        return Waiting(key, tuple(pod.request for pod in pods), since_s)

    def waited_s(self, pod: Pending) -> float:
        created_s = seconds_of(pod.created) if pod.created else None
        seen_s = self._clock() - pod.seen_s
        # What another leader saw counts as well, but not a clock that is years off.
        return max(seen_s, min(self._now() - created_s, 1e7)) if created_s else seen_s

    def _ends(self, held: Held, of: int) -> float:
        now_s = self._clock()
        kind, began_s = self._began_s.get(held.pod.uid, (None, now_s))
        if held.pod.terminating:
            return now_s + held.pod.grace_s
        return now_s + self._run_times.left_s(kind, now_s - began_s, of)

    # -- in words ----------------------------------------------------------------------------

    def words(self, uid: str) -> str:
        """Empty: no room is kept for this pod."""
        kept = self._reservations.get(self._key_of[uid]) if uid in self._key_of else None
        if kept is None:
            return ""
        known = self._said.get(uid)
        # Said once and kept: words that change all the time would be written all the time.
        if known is None or known[0] != kept.made_s:
            known = self._said[uid] = (kept.made_s, self._words(kept, uid))
        return known[1]

    def _words(self, kept: Reservation, uid: str) -> str:
        since = stamp(self._now() - (self._clock() - kept.made_s))
        # Of a group each pod names its own place.
        (own,) = (seat.placement for seat in kept.seats if seat.pod.uid == uid)
        return words_of(own, since, kept.expected_s - kept.made_s)


def _wants_room(pod: PodRequest) -> bool:
    """Not those that fit nowhere whatever leaves, or that say so themselves."""
    fits_never = bool(pod.unsupported or pod.waits_for or not pod.gpus)
    return not fits_never and pod.labels.get(LABEL_KEEP_ROOM) != "false"


def _told(job: Job) -> list[Told] | None:
    """Of all its pods, or None."""
    if not all(_wants_room(pod.request) for pod in job[1]):
        return None
    seats = [seat for pod in job[1] if (seat := told(pod.why)) is not None]
    return seats if len(seats) == len(job[1]) else None


def _key_of(group: Group | None) -> Hashable:
    return ("group", group.key) if group is not None else None


def jobs_of(waiting: Collection[Pending], groups: Groups) -> Iterator[Job]:
    """Of a group that is not complete as many pods as it needs, the smallest; else each pod."""
    members: dict[Key, list[Pending]] = {}
    for pod in waiting:
        if pod.group is None or groups.missing(pod.group) <= 0:
            yield pod.uid, [pod]
        else:
            members.setdefault(pod.group.key, []).append(pod)
    for pods in members.values():
        group = pods[0].group
        least = groups.missing(group) if group is not None else 0
        if len(pods) >= least:
            yield _key_of(group), sorted(pods, key=lambda each: size_of(each.request))[:least]
