"""`make bench`: runs every measurement, prints a table, writes bench/results/<time>.json.

python -m bench [apiserver] [kubernetes] [start] [scale] [gpus] [engine] [mixes] [constraints]
                [plans] [kept_room] [scheduler] [restart] [packing] [limiter] [nri] [history]
                [sampling]

Nothing named: all.
"""

import sys
from typing import Any

from bench import kubernetes
from bench.apiserver import measure_ours
from bench.cluster import measure_gpu_nodes, measure_scale, measure_start
from bench.constraints import measure_constraints
from bench.engine import measure_engine
from bench.history import measure_history
from bench.kept_room import measure_kept_room
from bench.limiter import measure_limiter
from bench.mixes import measure_mixes
from bench.nri import measure_nri
from bench.packing import measure_packing
from bench.plans import measure_plans
from bench.report import table
from bench.restart import measure_restart
from bench.sampling import measure_sampling
from bench.saved import here_and_now, save
from bench.scheduler import measure_scheduler


def main(wanted: set[str]) -> None:
    figures = here_and_now()
    for name, measure in _MEASUREMENTS.items():
        if wanted and name not in wanted:
            continue
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        figures[name] = measure()
    print(table(figures))
    save(figures)


def _kubernetes() -> dict[str, Any] | None:
    if not kubernetes.available():
        print("  no kube-apiserver here: `python3 testbed/build.py` makes one", file=sys.stderr)
        return None
    return kubernetes.measure_kubernetes()


_MEASUREMENTS = {
    "apiserver": measure_ours,
    "kubernetes": _kubernetes,
    "start": measure_start,
    "scale": measure_scale,
    "gpus": measure_gpu_nodes,
    "engine": measure_engine,
    "mixes": measure_mixes,
    "constraints": measure_constraints,
    "plans": measure_plans,
    "kept_room": measure_kept_room,
    "scheduler": measure_scheduler,
    "restart": measure_restart,
    "packing": measure_packing,
    "limiter": measure_limiter,
    "nri": measure_nri,
    "history": measure_history,
    "sampling": measure_sampling,
}

if __name__ == "__main__":
    main(set(sys.argv[1:]))
