"""Packing quality: policies side by side, filling and churn, through `gpupool replay`'s own code.

The openb traces are read from ../shared/data beside this repository, where they are; otherwise
synthetic ones are made, and the table says so. All policies learn their mix on the way, fgd too:
it is published, and better, with the whole trace known beforehand (docs/packing.md).

    python -m bench.packing [seeds]          alone, with seeds 0 and up
    python -m bench.packing [seeds] made     and on traces that `made_traces.py` makes of openb
"""

import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.made_traces import made_from
from gpupool.engine.policies import DEFAULT
from gpupool.replay.files import read_trace
from gpupool.replay.study import Method, outcomes
from gpupool.replay.synthetic import synthetic_trace
from gpupool.replay.trace import Trace

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
WORKLOADS = ("default", "gpushare40", "multigpu20", "gpuspec33")
POLICIES = (DEFAULT, "fgd", "best-fit")
LOADS = (0.95, 1.0, 1.1)
SEEDS = (0,)
_SYNTHETIC_NODES = (200, 400)
_CHURNED = ("accepted_gpu", "accepted_multi_gpu", "allocated")
_FILLED = ("alloc_at_100", "alloc_at_130", "accepted_multi_gpu", "first_refusal_at")


def measure_packing(seeds: tuple[int, ...] = SEEDS, *, made: bool = False) -> dict[str, Any]:
    traces = list(openb_traces()) or [synthetic_trace(nodes) for nodes in _SYNTHETIC_NODES]
    if made and len(traces) == len(WORKLOADS):
        traces += made_from(dict(zip(WORKLOADS, traces, strict=True)))
    rows = []
    for trace in traces:
        for policy in POLICIES:
            row: dict[str, Any] = {"trace": trace.name, "policy": policy}
            row["filling"] = _means(trace, Method("filling"), policy, seeds, _FILLED)
            for load in LOADS:
                figures = _means(trace, Method("churn", load), policy, seeds, _CHURNED)
                row[f"churn_{load:.0%}"] = figures
            rows.append(row)
            print("  " + " ".join(line(row)), file=sys.stderr, flush=True)
    return {"seeds": len(seeds), "synthetic": not DATA.is_dir(), "rows": rows}


def openb_traces() -> list[Trace]:
    nodes = DATA / "openb_node_list_gpu_node.csv"
    files = [DATA / f"openb_pod_list_{name}.csv" for name in WORKLOADS]
    return [read_trace(path, nodes) for path in files if path.exists() and nodes.exists()]


def _means(
    trace: Trace, method: Method, policy: str, seeds: tuple[int, ...], names: tuple[str, ...]
) -> dict[str, float]:
    found = [o.figures for o in outcomes(trace, method, [policy], seeds, lambda decisions: None)]
    wanted = (*names, "decisions_per_s")
    known = {name: [f[name] for f in found if f[name] is not None] for name in wanted}
    return {name: fmean(values) for name, values in known.items() if values}


def line(row: dict[str, Any]) -> tuple[str, ...]:
    """Trace, policy, GPU allocated at 100 % arrival, then by load accepted GPU / multi-GPU pods
    (GPU in use)."""
    name = row["trace"].removeprefix("openb_pod_list_").removesuffix(".csv")
    churned = [
        f"{figures['accepted_gpu']:.2f} / {figures.get('accepted_multi_gpu', 100):.0f}"
        f" ({figures['allocated']:.1f})"
        for key, figures in row.items()
        if key.startswith("churn_")
    ]
    return (name, row["policy"], f"{row['filling']['alloc_at_100']:.2f}", *churned)


if __name__ == "__main__":
    counts = [int(word) for word in sys.argv[1:] if word.isdigit()]
    measure_packing(tuple(range(counts[0])) if counts else SEEDS, made="made" in sys.argv)
