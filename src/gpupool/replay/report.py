"""Output of a study: JSON, a table, a file of placements, panels of a plot."""

import csv
import io
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from gpupool.replay.plot import Panel
from gpupool.replay.study import Method, Outcome, arrivals_for
from gpupool.replay.trace import Trace, Window


def as_json(trace: Trace, method: Method, found: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "trace": trace.name,
        "method": method.name,
        **({"load": round(100 * method.load, 3)} if method.load else {}),
        "nodes": len(trace.nodes),
        "cards": trace.capacity_milli // 1000,
        "pods": len(trace.pods),
        **({"stream": _stream(trace.window)} if trace.window else {}),
        "results": [_result(outcome) for outcome in found],
    }


def _stream(window: Window) -> dict[str, int]:
    return {
        "measured_from_s": window.begin_s,
        "measured_to_s": window.end_s,
        "ends_s": window.stop_s,
    }


def _result(outcome: Outcome) -> dict[str, Any]:
    reserves = {} if outcome.reserves is None else {"reservations": outcome.reserves}
    return {"policy": outcome.policy, "seed": outcome.seed, **reserves, **outcome.figures}


def mean_rows(found: Sequence[Outcome]) -> tuple[list[str], list[list[str]]]:
    """A header, and a line for each policy with the means over its seeds."""
    names = [name for name, value in found[0].figures.items() if not isinstance(value, list)]
    rows = []
    for run in dict.fromkeys((outcome.policy, outcome.reserves) for outcome in found):
        mine = [o.figures for o in found if (o.policy, o.reserves) == run]
        shown = f"{run[0]}, no reservations" if run[1] is False else run[0]
        rows.append(
            [shown, str(len(mine)), *(_mean(name, [f[name] for f in mine]) for name in names)]
        )
    return ["POLICY", "RUNS", *(name.upper().replace("_", "-") for name in names)], rows


def _mean(name: str, values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    mean = fmean(known)
    counted = all(isinstance(value, int) for value in known)
    return f"{mean:.0f}" if counted or name.endswith("_s") else f"{mean:.2f}"


def placements_csv(trace: Trace, method: Method, outcome: Outcome) -> str:
    """Every decision in order; for churn also the arrival before which the pod leaves."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    leaves = method.name == "churn" and method.given is None
    lines.writerow(["arrival", "pod", "node", "cards", *(["gone_before"] if leaves else [])])
    order = arrivals_for(trace, method, outcome.seed or 0).order if leaves else ()
    for at, decision in enumerate(outcome.decisions):
        cards = "|".join(str(card) for card in decision.cards)
        name = trace.pods[decision.pod].request.name
        gone = [-int(-(order[at].leaves or 0) // 1)] if leaves else []
        lines.writerow([at + 1, name, decision.node, cards, *([gone[0] + 1] if gone else [])])
    return text.getvalue()


_PANELS = {
    "filling": (
        ("allocated", "GPU allocated", "GPU arrived, % of the cluster", "% of the cluster"),
        ("fragments", "GPU free on cards that are partly used", "arrivals", "% of the cluster"),
    ),
    "churn": (
        ("allocated", "GPU allocated", "arrivals", "% of the cluster"),
        ("fragments", "GPU free on cards that are partly used", "arrivals", "% of the cluster"),
    ),
    "timed": (
        ("allocated", "GPU allocated", "hours", "% of the cluster"),
        ("waiting", "Pods that wait", "hours", "pods"),
        ("waits", "Waiting time of pods with several cards", "% of these pods", "hours"),
    ),
}


def panels_of(method: Method, found: Sequence[Outcome]) -> list[Panel]:
    return [
        Panel(title, x_label, y_label, tuple(outcome.curves[key] for outcome in found))
        for key, title, x_label, y_label in _PANELS[method.name]
    ]
