"""How long decisions wait while the scheduler looks for room that it can keep for a pod.

5,000 nodes of eight cards, each held by a pod of its own. CPU time of each step of a search;
between two steps the scheduler decides about other pods. With Python's own settings the garbage
collector would look at all 40,000 pods now and then, in the midst of a step, which takes 230 ms:
it is set as in the command.
"""

import random
import time
from typing import Any

from bench.collector import as_in_the_command
from bench.constraints import AIM_MS, CARDS, NODES, world_with
from gpupool.core.pods import PodRequest
from gpupool.engine.node_state import Held
from gpupool.engine.reservation import Waiting
from gpupool.engine.reservations import Reservations
from gpupool.engine.run_times import RunTimes
from gpupool.scheduler.kept_room import PODS_AT_ONCE

_RUNS = 500  # that have ended, of the kind of all pods
_MEAN_S = 7_200.0
_MEMBERS = (1, 4, 8)


def measure_kept_room(nodes: int = NODES) -> Any:
    with as_in_the_command():
        rows = [_row(nodes, members) for members in _MEMBERS]
    return {"nodes": nodes, "held": nodes * CARDS, "rows": rows}


def _row(nodes: int, members: int) -> dict[str, Any]:
    world, pods = world_with(nodes, nodes * CARDS, members)
    took = _steps(Reservations(world.cluster), pods, world.packing.policy)
    return {"pods": members, "steps": len(took), "most_ms": 1000 * max(took)}


def _steps(kept: Reservations, pods: tuple[PodRequest, ...], policy: Any) -> list[float]:
    """CPU seconds of each step, until room is kept."""
    draw, runs = random.Random(0), RunTimes()
    for _ in range(_RUNS):
        runs.ended("all", draw.expovariate(1 / _MEAN_S))
    ages: dict[str, float] = {}

    def ends(held: Held, of: int) -> float:
        age_s = ages.setdefault(held.pod.uid, draw.expovariate(1 / _MEAN_S))
        return runs.left_s("all", age_s, of)

    due, took = [Waiting("job", pods, 0.0)], []
    while "job" not in kept:
        began_s = time.process_time()
        kept.consider(due, policy, ends, 0.0, PODS_AT_ONCE)
        took.append(time.process_time() - began_s)
    return took


def kept_room_rows(figures: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    return [
        (
            f"search for room to keep at {figures['nodes']:,} nodes, {figures['held']:,} pods: "
            f"{row['pods']} pod{'s' if row['pods'] > 1 else ''} of 8 cards",
            f"{row['steps']} steps, the longest {row['most_ms']:.1f} ms",
            f"< {AIM_MS:.0f} ms",
            "",
        )
        for row in figures["rows"]
    ]


if __name__ == "__main__":
    for line in kept_room_rows(measure_kept_room()):
        print(f"{line[0]:80} {line[1]}")
