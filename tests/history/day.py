"""A synthetic day: 12 nodes with 4 cards each, and pods that come, work, rest and go.

The generator knows what happens at every second. `python -m tests.history.day FILE FROM UNTIL` lets
the collector's own functions see it minute by minute, as the API and agents would tell it.
"""

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from gpupool.contract.allocation import allocation_text
from gpupool.contract.inventory import inventory_text
from gpupool.core.gpu import Allocation, Card, CardShare, ContainerGpus, Inventory, Isolation
from gpupool.core.readings import CardReading, ContainerUse, NodeReadings
from gpupool.history.collector import LONGEST_S, Watched, write
from gpupool.history.facts import Moment
from gpupool.history.store import Store
from gpupool.readings import Readings
from kubeclient.objects import Obj

START = 1_700_006_400
MINUTES = 24 * 60
DAY_S = MINUTES * 60
NODES, CARDS, UNITS, CARD_MIB = 12, 4, 15, 16130
# Agents that are away, as (node, first minute, last minute): restarts, and one long silence.
# The last of them fall into the time in which pods are looked for that are idle.
_RESTARTS = ((200, 7), (900, 11), (1330, 5))
AWAY = [(n, m + by * n, m + by * n + 2) for n in range(NODES) for m, by in _RESTARTS]
AWAY += [(3, 500, 560)]
BACK_S = 25  # so long before it answers again an agent has begun to watch


@dataclass(frozen=True)
class Pod:
    name: str
    namespace: str
    user: str
    workload: str
    node: int
    card: int
    units: int
    asked_s: int  # seconds since the day began
    begin_s: int
    end_s: int
    # Works for `work_s`, rests for `rest_s`, and so on, from its beginning until `last_s`.
    work_s: int
    rest_s: int
    last_s: int
    percent: int
    mib: int

    def works(self, at_s: float) -> bool:
        if not self.begin_s <= at_s < min(self.end_s, self.last_s):
            return False
        return (at_s - self.begin_s) % (self.work_s + self.rest_s) < self.work_s

    def worked(self, begin_s: int, end_s: int) -> int:
        """Seconds of work in a time."""
        return sum(self.works(at) for at in range(begin_s, end_s))

    def last_work(self, at_s: int) -> int | None:
        while at_s >= self.begin_s and not self.works(at_s):
            at_s -= 1
        return at_s if at_s >= self.begin_s else None


@cache
def pods() -> tuple[Pod, ...]:
    dice = random.Random(15)
    found = []
    for node in range(NODES):
        for card in range(CARDS):
            at = dice.randrange(0, 3600)
            while at < DAY_S - 3600:
                length = dice.randrange(1800, 6 * 3600)
                end = min(at + length, DAY_S + 600)
                whole = dice.random() < 0.3
                for part in range(1 if whole else dice.randrange(1, 4)):
                    found.append(_pod(dice, (node, card, part), (at, end), whole))
                at = end + dice.randrange(60, 3600)
    return tuple(found)


def _pod(
    dice: random.Random, place: tuple[int, int, int], time: tuple[int, int], whole: bool
) -> Pod:
    node, card, part = place
    begin, end = time
    team = dice.choice(["research", "search", "ads"])
    lazy = dice.random()
    last = begin if lazy < 0.1 else begin + (end - begin) // 3 if lazy < 0.3 else end
    units = UNITS if whole else dice.randrange(1, 6)
    return Pod(
        f"p-{node}-{card}-{part}-{begin}",
        team,
        dice.choice(["ann", "bob", ""]),
        f"{team}-{dice.randrange(3)}",
        node,
        card,
        units,
        max(0, begin - dice.randrange(0, 900)),
        begin,
        end,
        dice.randrange(60, 1200),
        dice.randrange(0, 600),
        last,
        dice.randrange(5, 40),
        dice.randrange(200, units * CARD_MIB // UNITS),
    )


def uuid(node: int, card: int) -> str:
    return f"GPU-{node:04d}{card:04d}-0000-0000-0000-000000000000"


def _stamp(at_s: float) -> str:
    return datetime.fromtimestamp(START + at_s, UTC).isoformat().replace("+00:00", "Z")


def node_object(node: int) -> Obj:
    cards = tuple(Card(n, uuid(node, n), "V100", CARD_MIB) for n in range(CARDS))
    return {
        "metadata": {
            "name": f"n{node}",
            "labels": {"node.gpupool.io/pool": f"pool-{node % 2}", "cgpu": "true"},
            "annotations": {"gpupool.io/inventory": inventory_text(Inventory(cards))},
        }
    }


def pod_object(pod: Pod, at_s: int) -> Obj | None:
    """As the API shows it at that time; None: there is none."""
    if not pod.asked_s <= at_s < pod.end_s:
        return None
    annotations = {"gpupool.io/user": pod.user} if pod.user else {}
    placed = at_s >= pod.begin_s
    mib = pod.units * CARD_MIB // UNITS
    if placed:
        share = CardShare(uuid(pod.node, pod.card), pod.card, pod.units, mib, UNITS)
        held = ContainerGpus("main", (share,), Isolation.LIMIT)
        annotations["gpupool.io/allocation"] = allocation_text(Allocation((held,)))
    resource = "nvidia.com/gpu" if pod.units == UNITS else "aliyun.com/gpu-mem"
    amount = 1 if pod.units == UNITS else pod.units
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastTransitionTime": _stamp(pod.begin_s),
    }
    return {
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": f"uid-{pod.name}",
            "creationTimestamp": _stamp(pod.asked_s),
            "annotations": annotations,
            "ownerReferences": [{"controller": True, "kind": "StatefulSet", "name": pod.workload}],
        },
        "spec": {
            **({"nodeName": f"n{pod.node}"} if placed else {}),
            "containers": [{"name": "main", "resources": {"limits": {resource: str(amount)}}}],
        },
        "status": {"phase": "Running", "conditions": [scheduled] if placed else []},
    }


def readings(at_s: int) -> Readings:
    minute = at_s // 60
    away = {node for node, first, last in AWAY if first <= minute <= last}
    by_node = {}
    for node in range(NODES):
        if node not in away:
            back = [60 * (last + 1) - BACK_S for n, _, last in AWAY if n == node and last < minute]
            since_s = max(back, default=0)
            cards = tuple(_card(node, card, at_s, since_s) for card in range(CARDS))
            by_node[f"n{node}"] = NodeReadings(f"n{node}", START + at_s, cards)
    return Readings(by_node, {f"n{node}": "away" for node in away})


@cache
def _on_card(node: int, card: int) -> tuple[Pod, ...]:
    return tuple(pod for pod in pods() if (pod.node, pod.card) == (node, card))


def _card(node: int, card: int, at_s: int, since_s: int) -> CardReading:
    uses = []
    for pod in _on_card(node, card):
        if pod.begin_s <= at_s < pod.end_s:
            begin = max(pod.begin_s, at_s - 60)
            worked = pod.worked(begin, at_s) / max(at_s - begin, 1)
            watched = max(since_s, pod.begin_s)
            last = pod.last_work(at_s - 1)
            idle_since = watched if last is None else max(watched, last + 1)
            uses.append(
                ContainerUse(
                    pod.namespace,
                    pod.name,
                    "main",
                    pod.mib,
                    uid=f"uid-{pod.name}",
                    memory_peak_mib=pod.mib,
                    sm_percent=round(pod.percent * worked),
                    idle_s=float(at_s - idle_since),
                    watched_since_s=float(START + watched),
                    power_mw=100_000,
                )
            )
    return CardReading(uuid(node, card), memory_used_mib=0, sm_percent=0, containers=tuple(uses))


def moments(first: int, last: int) -> Iterator[tuple[int, Moment]]:
    """What a collector that starts at minute `first` sees."""
    watched = Watched()
    for node in range(NODES):
        watched.node(None, node_object(node))
    shown: dict[str, tuple[bool, bool]] = {}
    for minute in range(first, last + 1):
        at_s = minute * 60
        for pod in pods():
            state = (pod.asked_s <= at_s < pod.end_s, at_s >= pod.begin_s)
            if state != shown.get(pod.name, (False, False)):
                gone = {"metadata": {"namespace": pod.namespace, "name": pod.name}}
                watched.pod(gone, pod_object(pod, at_s))
            shown[pod.name] = state
        yield minute, watched.moment(START + at_s, readings(at_s))


def replay(path: Path, first: int, last: int) -> None:
    with Store(path) as store:
        before: Moment | None = None
        for minute, moment in moments(first, last):
            if before is not None and moment.at_ms - before.at_ms <= LONGEST_S * 1000:
                write(store, before, moment)
                print(minute, flush=True)  # noqa: T201  # the test waits for it
            before = moment


if __name__ == "__main__":
    replay(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
