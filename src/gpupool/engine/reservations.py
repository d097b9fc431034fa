"""Reservations: room that is kept for pods and gangs that have waited for long.

    consider     who gets one next, and where (`future_room.py`)
    gone         a pod has ended: what it held is kept from now on
    settle       what became free elsewhere is kept instead of what has to be waited for
    backfill     a pod that will have left by then uses the room in the meantime
    lapsed       its room was idle for too long (`idle_room.py`)
    drop         its pods are placed or gone

Why every pod that can fit on an empty cluster is placed in finite time, if pods of its priority
end: every second reservation goes to the one that has waited longest. The pods that a reservation
waits for are fixed; others may only join them until the time at which it was expected when it was
made. It moves a few times at most, and apart from that only to room that is free already. It may be
idle for twice as long each time.

Why reservations never wait for one another: a reservation is made for all pods of a gang at once,
from room that is not kept for another, and from pods that end by themselves.
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager

from gpupool.engine.cluster import ClusterModel, reserved_uid
from gpupool.engine.decide import Placement, decide_on
from gpupool.engine.future_room import FutureRoom, Place, Seat, depends_on_others, seats_on
from gpupool.engine.gang import size_of
from gpupool.engine.idle_room import IdleRoom, is_idle
from gpupool.engine.policies.policy import Policy
from gpupool.engine.reservation import Reservation, Waiting
from gpupool.engine.room_scan import ALL, Ends, Search
from gpupool.engine.room_search import NotYet, RoomSearch
from gpupool.engine.trial import Trial, trial

_NODES_EACH = 16  # so many nodes of the cluster for each pod that has a reservation
_MOST = 64  # each takes time whenever the scheduler looks
_MOST_MOVES = 12
# When somebody looks whether other room is free sooner: first after so long, then after a fourth of
# the time that the reservation is old. What was expected says little, because it may be wrong.
_LOOK_AGAIN_S = 600.0
_LOOKS = 4
_BLOCKED_S = 60.0  # until somebody looks again whether room of others is still in the way
_MOST_HOPELESS = 4096


class Reservations:
    def __init__(
        self, cluster: ClusterModel, spoken_for: Callable[[], Collection[str]] = tuple
    ) -> None:
        """`spoken_for`: uids of pods that leave for somebody else."""
        self._cluster = cluster
        self._spoken_for = spoken_for
        self._made: dict[Hashable, Reservation] = {}
        self._seat_of: dict[str, tuple[Hashable, int]] = {}  # by uid of a pod that leaves for it
        # Fits on no empty node, as of this change. Those that were given up longest ago first.
        self._hopeless: dict[Hashable, int] = {}
        self._tries_again = False  # the next turn is for one that was given up before
        self._look_again_s = 0.0
        self._looking, self._moving = RoomSearch(), RoomSearch()
        self._blocked: Hashable = None  # that there is no room for it is known already
        self.idle = IdleRoom()

    @property
    def is_looking(self) -> bool:
        """Whether there is more to do at once: see `most` of `consider` and `move_late`."""
        return self.is_considering or self._moving.is_on

    @property
    def is_considering(self) -> bool:
        return self._looking.is_on or self._blocked is not None

    def __len__(self) -> int:
        return len(self._made)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._made

    def get(self, key: Hashable) -> Reservation | None:
        return self._made.get(key)

    def all(self) -> Sequence[Reservation]:
        return list(self._made.values())

    # -- who gets one ------------------------------------------------------------------------

    def most(self) -> int:
        """Pods that may have room kept for them."""
        return min(max(1, len(self._cluster) // _NODES_EACH), _MOST)

    def consider(
        self,
        due: Sequence[Waiting],
        policy: Policy,
        ends: Ends,
        now_s: float,
        most: int = ALL,
    ) -> list[Reservation]:
        """New reservations. `due`: those that have waited for long, first come first.

        `most`: nodes with about so many pods are looked at, for one of them. The rest is done by
        calling this again.
        """
        made: list[Reservation] = []
        due = [each for each in due if not self.idle.pauses(each.key, now_s)]
        for waiting, by_age in self._in_turn(due) if self.may_consider(now_s) else ():
            if self._made and self._seats() + len(waiting.pods) > self.most():
                break
            room = self._look_for(waiting, policy, ends, now_s, most)
            if isinstance(room, NotYet):
                return made
            self._blocked, self._tries_again = None, not self._tries_again
            if isinstance(room, FutureRoom):
                made.append(self._make(waiting, room, now_s, by_age=by_age))
            elif room:
                # Room of others is in its way. Nobody who came later may take more of it.
                self._look_again_s = now_s + _BLOCKED_S
                break
            else:
                self._give_up(waiting.key)
            if most < ALL:
                break
        self._looking.stop()
        self._blocked = None
        return made

    def _look_for(
        self, waiting: Waiting, policy: Policy, ends: Ends, now_s: float, most: int
    ) -> FutureRoom | bool | NotYet:
        """Without room: whether there would be some if none were kept for others."""
        key, pods = waiting.key, waiting.pods
        if self._blocked != key:
            self._blocked = None
            room = self._looking.find(key, pods, self._search(policy, ends, now_s), most)
            if room is not None or not self._made:
                return room or False
            self._blocked = key
            if most < ALL:
                return NotYet()
        with self.ignored():
            search = Search(self._cluster, policy, ends, now_s)
            room = self._looking.find(("blocked", key), pods, search, most)
        return room if isinstance(room, NotYet) else room is not None

    def may_consider(self, now_s: float) -> bool:
        return now_s >= self._look_again_s and not self.is_full()

    def _give_up(self, key: Hashable) -> None:
        if len(self._hopeless) >= _MOST_HOPELESS:
            self._hopeless.clear()
        self._hopeless.pop(key, None)
        self._hopeless[key] = self._looking.position

    def is_full(self) -> bool:
        return self._seats() >= self.most()

    def _seats(self) -> int:
        return sum(len(each.seats) for each in self._made.values())

    def _in_turn(self, due: Sequence[Waiting]) -> Iterator[tuple[Waiting, bool]]:
        """The oldest and the largest in turn, and whether it is the oldest.

        By age alone, small pods would have all turns: there are many more of them. Those that were
        given up before a node changed have every second turn only, or they would keep off others.
        """
        left = [w for w in due if w.key not in self._made and w.key not in self._hopeless]
        known = {w.key: w for w in due if not self._is_hopeless(w.key)}
        again = [known[key] for key in self._hopeless if key in known]
        while left or again:
            if again and (self._tries_again or not left):
                yield again.pop(0), False
                continue
            by_age = self._is_turn_of_the_oldest()
            at = 0 if by_age else max(range(len(left)), key=lambda at: left[at].cards)
            yield left.pop(at), by_age

    def _is_turn_of_the_oldest(self) -> bool:
        return 2 * sum(kept.by_age for kept in self._made.values()) <= len(self._made)

    def _is_hopeless(self, key: Hashable) -> bool:
        return self._hopeless.get(key) == self._cluster.node_changes.position

    def _search(self, policy: Policy, ends: Ends, now_s: float) -> Search:
        spoken_for = frozenset(self._seat_of).union(self._spoken_for())
        return Search(self._cluster, policy, ends, now_s, spoken_for)

    def _make(
        self, waiting: Waiting, room: FutureRoom, now_s: float, *, by_age: bool
    ) -> Reservation:
        expected_s = room.expected_s
        look_s = now_s + _LOOK_AGAIN_S
        found = Reservation(waiting, list(room.seats), now_s, expected_s, look_s, by_age)
        self._made[waiting.key] = found
        for at in range(len(found.seats)):
            self._keep(found, at)
        return found

    def restore(
        self, places: Sequence[Place], policy: Policy, ends: Ends, now_s: float
    ) -> list[Reservation]:
        """Those that are known already, each for one pod, under its uid."""
        ordered = sorted(places, key=lambda place: size_of(place.pod), reverse=True)
        seats = seats_on(Search(self._cluster, policy, ends, now_s), ordered)
        return [
            self._make(
                Waiting(seat.pod.uid, (seat.pod,), now_s), FutureRoom((seat,)), now_s, by_age=False
            )
            for seat in seats
        ]

    def take_over(
        self,
        waiting: Waiting,
        places: Sequence[Place],
        policy: Policy,
        ends: Ends,
        made_s: float,
        expected_s: float,
    ) -> Reservation | None:
        """One that was made by somebody else before. None: not all of its pods will fit there."""
        if self._made and self._seats() + len(places) > self.most():
            return None
        ordered = sorted(places, key=lambda place: size_of(place.pod), reverse=True)
        seats = seats_on(self._search(policy, ends, made_s), ordered)
        if len(seats) < len(places):
            return None
        by_age = self._is_turn_of_the_oldest()
        kept = self._make(waiting, FutureRoom(tuple(seats)), made_s, by_age=by_age)
        kept.expected_s = expected_s
        return kept

    def _keep(self, kept: Reservation, at: int) -> None:
        seat = kept.seats[at]
        for uid in seat.leaving:
            # Of two members that wait for one pod, the first counts what it holds.
            self._seat_of.setdefault(uid, (kept.waiting.key, at))
        own = [uid for uid in seat.leaving if self._seat_of[uid] == (kept.waiting.key, at)]
        self._cluster.reserve(seat.pod, *seat.placement, own)

    # -- what happens to them ----------------------------------------------------------------

    def gone(self, uid: str) -> None:
        """A pod has left. In the same step as its release: its room must not be free for all."""
        known = self._seat_of.pop(uid, None)
        if known is None:
            return
        kept = self._made[known[0]]
        for at, seat in enumerate(kept.seats):
            if uid in seat.leaving:
                kept.seats[at] = seat._replace(leaving=seat.leaving - {uid})
                self._keep(kept, at)

    def drop(self, key: Hashable) -> bool:
        """Whether room became free."""
        self._hopeless.pop(key, None)
        kept = self._made.pop(key, None)
        if kept is None:
            return False
        self._look_again_s = 0.0
        self.idle.dropped(key)
        for seat in kept.seats:
            self._cluster.unreserve(seat.pod.uid)
        self._seat_of = {u: seat for u, seat in self._seat_of.items() if seat[0] != key}
        return True

    def lapsed(self, now_s: float) -> list[Reservation]:
        """Those that have to be dropped now, and get no room for a while."""
        return [
            kept
            for key, kept in self._made.items()
            if self.idle.is_over(key, self._is_idle(kept), now_s)
        ]

    def _is_idle(self, kept: Reservation) -> bool:
        return any(is_idle(self._cluster, seat) for seat in kept.seats)

    def still_holds(self, key: Hashable, policy: Policy) -> bool:
        """Whether its pods will fit there when those have ended that it waits for."""
        kept = self._made[key]
        with trial(self._cluster) as trying:
            self._release(kept, trying)
            for seat in kept.seats:
                for uid in seat.leaving:
                    trying.release(uid)
                found = decide_on(self._cluster, seat.pod, policy, (seat.placement.node,))
                if not isinstance(found, Placement):
                    return False
                trying.hold(seat.pod, *found)
        return True

    # -- decisions beside them ---------------------------------------------------------------

    @contextmanager
    def own_room(self, key: Hashable) -> Iterator[None]:
        """Inside the context the room that is kept for these pods is free."""
        with trial(self._cluster) as trying:
            if key in self._made:
                self._release(self._made[key], trying)
            yield

    @contextmanager
    def ignored(self, which: Callable[[Reservation], bool] = lambda _: True) -> Iterator[None]:
        """Inside the context these reservations are not there."""
        with trial(self._cluster) as trying:
            for kept in self._made.values():
                if which(kept):
                    self._release(kept, trying)
            yield

    def _release(self, kept: Reservation, trying: Trial) -> None:
        for seat in kept.seats:
            trying.release(reserved_uid(seat.pod.uid))

    def open_until(self, end_s: float, priority: int) -> list[Reservation]:
        """Reservations whose room a pod may use that has ended by then, or that is more important.

        Not those of which nothing is free yet.
        """
        return [
            kept
            for kept in self._made.values()
            if (end_s <= kept.expected_s or kept.waiting.priority < priority)
            and self._is_idle(kept)
        ]

    def backfilled(self, uid: str, policy: Policy) -> None:
        """A pod is held from now on. A reservation whose room it uses waits for it as well."""
        held = self._cluster.held(uid)
        if held is None or uid in self._seat_of:
            return
        cards = {hold.uuid for hold in held.cards}
        for kept in self.all():
            here = [at for at, seat in enumerate(kept.seats) if seat.placement.node == held.node]
            if here and not self.still_holds(kept.waiting.key, policy):
                at = max(here, key=lambda at: len(cards & _cards_of(kept.seats[at])))
                seat = kept.seats[at]
                kept.seats[at] = seat._replace(leaving=seat.leaving | {uid})
                self._keep(kept, at)
                return

    def settle(self, node: str, policy: Policy) -> list[Seat]:
        """Room became free on a node: seats that wait for pods to end move there. Those given up.

        When a pod ends is a guess, and the first of many nodes is free long before a certain one.
        """
        given_up: list[Seat] = []
        in_turn = sorted(self.all(), key=lambda k: (-k.waiting.priority, k.waiting.since_s))
        for kept in in_turn:
            for at, seat in enumerate(kept.seats):
                if not seat.leaving or depends_on_others(seat.pod):
                    continue
                with trial(self._cluster) as trying:
                    trying.release(reserved_uid(seat.pod.uid))
                    found = decide_on(self._cluster, seat.pod, policy, (node,))
                if isinstance(found, Placement):
                    given_up.append(seat)
                    self._seat_now(kept, at, found, policy)
        return given_up

    def _seat_now(self, kept: Reservation, at: int, found: Placement, policy: Policy) -> None:
        seat, here = kept.seats[at], (kept.waiting.key, at)
        kept.seats[at] = seat._replace(placement=found, leaving=frozenset())
        self._seat_of = {uid: of for uid, of in self._seat_of.items() if of != here}
        self._keep(kept, at)
        for other, still in enumerate(kept.seats):
            # Of members that wait for one pod only the first may have said so.
            if still.placement.node == seat.placement.node and other != at:
                if not self.still_holds(kept.waiting.key, policy):
                    kept.seats[other] = still._replace(leaving=still.leaving | seat.leaving)
                self._keep(kept, other)

    # -- late ones ---------------------------------------------------------------------------

    def move_late(self, policy: Policy, ends: Ends, now_s: float, most: int = ALL) -> bool:
        """A reservation gets other room where there is some that will be free much sooner. Whether
        one did. `most`: as in `consider`.
        """
        moved = False
        late = [kept for kept in self.all() if kept.look_s <= now_s and kept.moves < _MOST_MOVES]
        for kept in sorted(late, key=lambda kept: kept.look_s):
            held = [self._cluster.held(uid) for seat in kept.seats for uid in seat.leaving]
            left_s = max((ends(each, len(held)) for each in held if each), default=now_s) - now_s
            with self.own_room(kept.waiting.key):
                search = self._search(policy, ends, now_s)
                room = self._moving.find(kept.waiting.key, kept.waiting.pods, search, most)
            if isinstance(room, NotYet):
                return moved
            kept.look_s = now_s + max(_LOOK_AGAIN_S, (now_s - kept.made_s) / _LOOKS)
            if room is not None and room.expected_s - now_s < left_s / 2:
                self.drop(kept.waiting.key)
                found = self._make(kept.waiting, room, now_s, by_age=kept.by_age)
                found.moves = kept.moves + 1
                moved = True
            if most < ALL:
                break
        self._moving.stop()
        return moved


def _cards_of(seat: Seat) -> set[str]:
    containers = seat.placement.allocation.containers
    return {share.uuid for gpus in containers for share in gpus.shares}
