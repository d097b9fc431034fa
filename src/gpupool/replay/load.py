"""at_load: a trace as a long stream of pods that together ask for a given part of the GPUs.

The trace is repeated, one lap after the other. Its times of arrival are compressed or stretched
until the pods of a lap ask for as many card-seconds as the load is of what the cluster has in that
time. Running times stay as they are.

The stream has always been there: of earlier laps those pods come as well that still run when the
measurement begins, for the rest of their time. They are spread over the warm-up. Without them, a
cluster whose pods run for up to months would not be at its load for months.

The first and the last hundredth of the pods arrive with the others: a recording often begins with a
few old pods, months before the rest.
"""

from dataclasses import replace

from gpupool.replay.arrivals import by_time
from gpupool.replay.trace import Trace, TraceError, TracePod, Window

# How long the stream is at least: times the cluster's GPUs that its pods ask for, and laps.
_TURNOVERS, _LAPS = 12.0, 4
# Parts of the stream. Before the first one the cluster fills. Pods that come after the second one
# are not measured; they keep the cluster busy while others wait.
_FROM, _TO = 0.25, 0.75
_MOST_PODS = 2_000_000


def at_load(trace: Trace, load: float) -> Trace:
    by_time(trace)  # refuses a trace without times
    asked = sum(pod.gpu_milli for pod in trace.pods)
    if not asked or not trace.capacity_milli:
        raise TraceError(f"{trace.name}: wanted nodes and pods with GPUs, found none")
    if any(pod.runs_s is None for pod in trace.pods):
        raise TraceError(f"{trace.name}: wanted pods that end, found one that runs for ever")
    work = sum(pod.gpu_milli * (pod.runs_s or 0) for pod in trace.pods)
    if not work:
        raise TraceError(f"{trace.name}: wanted pods that run for a time, found none")
    laps = max(_LAPS, -int(-_TURNOVERS * trace.capacity_milli // asked))
    lap_s = work / (load * trace.capacity_milli)
    end_s = laps * lap_s
    window = Window(round(_FROM * end_s), round(_TO * end_s), round(end_s))
    pods = _one_lap(trace, lap_s)
    earlier = [(pod, _earlier_laps(pod, lap_s, window.begin_s)) for pod in pods]
    if laps * len(pods) + sum(many for _, many in earlier) > _MOST_PODS:
        raise TraceError(f"{trace.name}: it takes {laps} laps of this trace; that is too many")
    old = [_in_lap(pod, -lap, lap_s) for pod, many in earlier for lap in range(1, many + 1)]
    new = [_in_lap(pod, lap, lap_s) for lap in range(laps) for pod in pods]
    return replace(trace, pods=(*_spread(old, window.begin_s), *new), window=window)


def _one_lap(trace: Trace, lap_s: float) -> list[TracePod]:
    times = sorted(pod.arrives_s or 0 for pod in trace.pods)
    few = len(times) // 100
    first, last = times[few], times[-1 - few]
    part = lap_s / (last - first + 1)
    return [
        replace(pod, arrives_s=int((min(max(pod.arrives_s or 0, first), last) - first) * part))
        for pod in trace.pods
    ]


def _earlier_laps(pod: TracePod, lap_s: float, now_s: int) -> int:
    """Of how many laps before the first one the pod still runs at this time."""
    return max(0, int(((pod.arrives_s or 0) + (pod.runs_s or 0) - now_s) // lap_s))


def _in_lap(pod: TracePod, lap: int, lap_s: float) -> TracePod:
    return replace(
        pod,
        arrives_s=(pod.arrives_s or 0) + round(lap * lap_s),
        gang=f"{pod.gang}/{lap}" if pod.gang else "",
    )


def _spread(old: list[TracePod], until_s: int) -> list[TracePod]:
    """From 0 to this time, in the order in which they came."""
    came = sorted({pod.arrives_s or 0 for pod in old})
    places = {time_s: at * until_s // len(came) for at, time_s in enumerate(came)}
    return [_later(pod, places[pod.arrives_s or 0]) for pod in old]


def _later(pod: TracePod, arrives_s: int) -> TracePod:
    ran_s = arrives_s - (pod.arrives_s or 0)
    return replace(pod, arrives_s=arrives_s, runs_s=(pod.runs_s or 0) - ran_s, ran_s=ran_s)
