"""at_load: a trace whose times are compressed until a given part of the GPUs is asked for at once.

What counts is the GPU that pods would hold if none had to wait, on average over the second half of
the arrivals: in the first half the cluster fills. Running times stay as they are. A trace that asks
for too little even if all its pods arrive at once is repeated, one lap after the other. The first
and the last hundredth of the pods arrive with the others: a recording often begins with a few old
pods, months before the rest. Times of a trace that is busier than that are stretched.
"""

from dataclasses import replace

from gpupool.replay.arrivals import by_time
from gpupool.replay.trace import MILLI, Trace, TraceError, TracePod

_LAPS_OF_GPU = 6.0  # times the cluster's GPUs that all pods together ask for, at least
_MOST_PODS = 1_000_000
_STEPS = 60
_LONGEST = 2.0**20  # times longer than in the trace


def at_load(trace: Trace, load: float) -> Trace:
    by_time(trace)  # refuses a trace without times
    asked = sum(pod.gpu_milli for pod in trace.pods)
    if not asked or not trace.capacity_milli:
        raise TraceError(f"{trace.name}: wanted nodes and pods with GPUs, found none")
    if any(pod.runs_s is None for pod in trace.pods):
        raise TraceError(f"{trace.name}: wanted pods that end, found one that runs for ever")
    laps = -int(-_LAPS_OF_GPU * trace.capacity_milli // asked)
    if laps * len(trace.pods) > _MOST_PODS:
        raise TraceError(f"{trace.name}: it takes {laps} laps of this trace; that is too many")
    pods = _repeated(trace, max(1, laps))
    wanted = load * trace.capacity_milli
    low, high = 0.0, 1.0
    while _offered(pods, high) > wanted and high < _LONGEST:  # busier than that already
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _offered(pods, middle) > wanted:
            low = middle
        else:
            high = middle
    return replace(trace, pods=tuple(_stretched(pod, high) for pod in pods))


def _repeated(trace: Trace, laps: int) -> list[TracePod]:
    times = sorted(pod.arrives_s or 0 for pod in trace.pods)
    few = len(times) // 100
    first, last = times[few], times[-1 - few]
    span = last - first + 1
    return [
        replace(
            pod,
            arrives_s=min(max(pod.arrives_s or 0, first), last) - first + lap * span,
            gang=f"{pod.gang}/{lap}" if pod.gang else "",
        )
        for lap in range(laps)
        for pod in trace.pods
    ]


def _stretched(pod: TracePod, part: float) -> TracePod:
    return replace(pod, arrives_s=round((pod.arrives_s or 0) * part))


def _offered(pods: list[TracePod], part: float) -> float:
    """Thousandths of a card, on average over the second half of the time of arrivals."""
    end = part * max(pod.arrives_s or 0 for pod in pods)
    begin = end / 2
    held = 0.0
    for pod in pods:
        came = part * (pod.arrives_s or 0)
        held += pod.gpu_milli * max(0.0, min(end, came + (pod.runs_s or 0)) - max(begin, came))
    return held / (end - begin) if end > begin else float(MILLI * len(pods))
