"""The engine on real mixes of pods: decisions per second while clusters of three sizes fill up.

The traces are openb's, where they are (see `packing.py`), else a synthetic one. Larger clusters are
openb's machines repeated, with as many more pods. CPU time of one core, since the machine may be
shared; a decision is count, decide and hold. `python -m bench.mixes short` takes a few seconds.
"""

import gc
import statistics
import sys
import time
from dataclasses import replace
from itertools import count
from typing import Any

from bench.packing import openb_traces
from gpupool.core.nodes import NodeInfo
from gpupool.engine.decide import Placement, decide
from gpupool.engine.policies import DEFAULT
from gpupool.replay.arrivals import filling
from gpupool.replay.run import Stage
from gpupool.replay.synthetic import synthetic_trace
from gpupool.replay.trace import Trace

NODES = (1_213, 5_000, 15_000)
_MIXES = ("default", "gpuspec33")
_SLICE = 500
_SYNTHETIC_NODES = 1_213
_AS_THE_SCHEDULER = (50_000, 20, 100)  # thresholds of the garbage collector: `cli/programs.py`


def measure_mixes(short: bool = False) -> dict[str, Any]:
    found = [trace for trace in openb_traces() if any(name in trace.name for name in _MIXES)]
    traces = found or [synthetic_trace(_SYNTHETIC_NODES)]
    before = gc.get_threshold()
    gc.set_threshold(*_AS_THE_SCHEDULER)
    try:
        rows = [
            {"trace": trace.name, "nodes": nodes, **_fill(enlarged(trace, nodes))}
            for trace in (traces[-1:] if short else traces)
            for nodes in (NODES[:2] if short else NODES)
        ]
    finally:
        gc.set_threshold(*before)
    return {"policy": DEFAULT, "synthetic": not found, "rows": rows}


def enlarged(trace: Trace, nodes: int) -> Trace:
    """The machines of the trace again and again."""
    made: list[NodeInfo] = []
    for copy in count():
        made += [_copied(node, copy) for node in trace.nodes[: nodes - len(made)]]
        if len(made) >= nodes:
            return replace(trace, nodes=tuple(made))
    raise AssertionError


def _copied(node: NodeInfo, copy: int) -> NodeInfo:
    inventory = node.inventory
    if not copy or inventory is None:
        return replace(node, name=f"{node.name}-{copy}")
    cards = tuple(replace(card, uuid=f"{card.uuid}-{copy}") for card in inventory.cards)
    return replace(node, name=f"{node.name}-{copy}", inventory=replace(inventory, cards=cards))


def _fill(trace: Trace) -> dict[str, float]:
    """Pods until 130 % of the cards are asked for; those that fit nowhere count as well."""
    stage, order = Stage(trace, DEFAULT), filling(trace, 0).order
    cluster, packing = stage.cluster, stage.packing
    took = []
    for first in range(0, len(order), _SLICE):
        part = [
            replace(trace.pods[arrival.pod].request, uid=str(first + at))
            for at, arrival in enumerate(order[first : first + _SLICE])
        ]
        began = time.process_time()
        for pod in part:
            packing.count(cluster, pod)
            decision = decide(cluster, pod, packing.policy)
            if isinstance(decision, Placement):
                cluster.hold(pod, decision.node, decision.allocation)
        took.append((time.process_time() - began) / len(part))
    return {
        "decisions": len(order),
        "per_second": 1 / statistics.fmean(took),
        "median_per_second": 1 / statistics.median(took),
    }


def line(row: dict[str, Any]) -> str:
    return f"{row['per_second']:,.0f}/s, median {row['median_per_second']:,.0f}/s"


if __name__ == "__main__":
    for row in measure_mixes(short="short" in sys.argv[1:])["rows"]:
        print(row["trace"], row["nodes"], line(row))
