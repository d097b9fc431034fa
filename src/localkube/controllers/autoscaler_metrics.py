"""How many pods a metric asks for. Pure.

All amounts are in thousandths. Pods without a usable metric must not cause a change: they count as
busy when the other pods propose a smaller size, and as idle when these propose a larger one.
"""

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kubeclient.objects import Obj
from kubeclient.quantity import milli_value, parse
from localkube.controllers.pods import is_terminating, parse_time

TOLERANCE = 0.1
_INITIALIZATION = datetime.timedelta(minutes=5)  # after its start, a pod's CPU says little
_READINESS_DELAY = datetime.timedelta(seconds=30)
_DEFAULT_WINDOW = datetime.timedelta(seconds=60)


class NoMetric(Exception):
    """The metric is not available; the message is that of Kubernetes."""


@dataclass(frozen=True, slots=True)
class Sample:
    amount: int
    taken: datetime.datetime
    window: datetime.timedelta


@dataclass(frozen=True, slots=True)
class Target:
    """One of the two is set."""

    utilization: int | None  # percent of the requests
    average: int | None
    resource: str
    container: str = ""
    up: float = TOLERANCE
    down: float = TOLERANCE

    def is_met(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


@dataclass(frozen=True, slots=True)
class Proposal:
    replicas: int
    average: int
    utilization: int | None = None


def samples_of(metrics: Sequence[Obj], resource: str, container: str) -> dict[str, Sample]:
    """By pod. Leaves out pods of which not every container has a value."""
    found: dict[str, Sample] = {}
    for metric in metrics:
        amounts = [
            each["usage"].get(resource)
            for each in metric.get("containers") or ()
            if container in ("", each["name"])
        ]
        if amounts and None not in amounts:
            total = sum(milli_value(parse(amount)) for amount in amounts)
            window = datetime.timedelta(seconds=_seconds(metric.get("window", "")))
            found[metric["metadata"]["name"]] = Sample(
                total, parse_time(metric.get("timestamp")), window or _DEFAULT_WINDOW
            )
    return found


def _seconds(text: str) -> float:
    """Seconds of a duration such as 15s, the only form in the metrics."""
    number = text.removesuffix("s")
    return float(number) if number.replace(".", "", 1).isdigit() else 0.0


@dataclass(frozen=True, slots=True)
class _Groups:
    ready: int
    unready: set[str]
    missing: set[str]
    ignored: set[str]


def _groups(
    pods: Sequence[Obj], samples: Mapping[str, Sample], resource: str, now: datetime.datetime
) -> _Groups:
    ready, unready, missing, ignored = 0, set[str](), set[str](), set[str]()
    for pod in pods:
        name, phase = pod["metadata"]["name"], pod.get("status", {}).get("phase")
        if is_terminating(pod) or phase == "Failed":
            ignored.add(name)
        elif phase == "Pending":
            unready.add(name)
        elif name not in samples:
            missing.add(name)
        elif resource == "cpu" and _is_unready(pod, samples[name], now):
            unready.add(name)
        else:
            ready += 1
    return _Groups(ready, unready, missing, ignored)


def _is_unready(pod: Obj, sample: Sample, now: datetime.datetime) -> bool:
    """Whether to ignore the pod's CPU: it has just started, or has never been ready."""
    status = pod.get("status", {})
    condition = next((c for c in status.get("conditions") or () if c["type"] == "Ready"), None)
    if condition is None or not status.get("startTime"):
        return True
    started = parse_time(status["startTime"])
    since = parse_time(condition.get("lastTransitionTime"))
    if started + _INITIALIZATION > now:
        return condition["status"] == "False" or sample.taken < since + sample.window
    return condition["status"] == "False" and started + _READINESS_DELAY > since


def requests_of(pods: Sequence[Obj], resource: str, container: str) -> dict[str, int]:
    """By pod. Raises NoMetric if a container has no request."""
    return {pod["metadata"]["name"]: _request(pod, resource, container) for pod in pods}


def _request(pod: Obj, resource: str, container: str) -> int:
    spec, name = pod["spec"], pod["metadata"]["name"]
    whole = (spec.get("resources") or {}).get("requests")
    if whole and not container:
        if resource not in whole:
            raise NoMetric(f"missing pod-level request for {resource} in Pod {name}")
        return milli_value(parse(whole[resource]))
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    total, found = 0, False
    for each in [*spec["containers"], *sidecars]:
        if container not in ("", each["name"]):
            continue
        asked = ((each.get("resources") or {}).get("requests") or {}).get(resource)
        if asked is None:
            where = f"container {each['name']} of Pod {name}"
            raise NoMetric(f"missing request for {resource} in {where}")
        total, found = total + milli_value(parse(asked)), True
    if not found:
        raise NoMetric(f"container {container} not found in Pod {name}")
    return total


_Ratio = Callable[[Mapping[str, int]], tuple[float, int, int | None]]  # ratio, average, percent


def _ratio_of_requests(requests: Mapping[str, int], target: int) -> _Ratio:
    def ratio(amounts: Mapping[str, int]) -> tuple[float, int, int | None]:
        known = [name for name in amounts if name in requests]
        asked = sum(requests[name] for name in known)
        if not asked:
            raise NoMetric("no metrics returned matched known pods")
        total = sum(amounts[name] for name in known)
        percent = total * 100 // asked
        return percent / target, total // len(known), percent

    return ratio


def _ratio_of_average(target: int) -> _Ratio:
    def ratio(amounts: Mapping[str, int]) -> tuple[float, int, int | None]:
        average = sum(amounts.values()) // len(amounts)
        return average / target, average, None

    return ratio


def propose(
    current: int,
    pods: Sequence[Obj],
    samples: Mapping[str, Sample],
    target: Target,
    now: datetime.datetime,
) -> Proposal:
    """Raises NoMetric."""
    if not pods:
        raise NoMetric("no pods returned by selector while calculating replica count")
    groups = _groups(pods, samples, target.resource, now)
    left_out = groups.ignored | groups.unready
    amounts = {name: s.amount for name, s in samples.items() if name not in left_out}
    if not amounts:
        raise NoMetric("did not receive metrics for targeted pods (pods might be unready)")
    if target.utilization is not None:
        requests = requests_of(pods, target.resource, target.container)
        ratio_of = _ratio_of_requests(requests, target.utilization)
        busy = {
            name: asked * max(100, target.utilization) // 100 for name, asked in requests.items()
        }
    else:
        average = target.average or 1
        ratio_of = _ratio_of_average(average)
        busy = dict.fromkeys(groups.missing, average)
    ratio, shown, percent = ratio_of(amounts)
    more_are_coming = bool(groups.unready) and ratio > 1.0
    if not more_are_coming and not groups.missing:
        wanted = current if target.is_met(ratio) else math.ceil(ratio * groups.ready)
        return Proposal(wanted, shown, percent)
    if ratio < 1.0:
        amounts |= {name: busy[name] for name in groups.missing}
    elif ratio > 1.0:
        amounts |= dict.fromkeys(groups.missing | groups.unready, 0)
    again, _, _ = ratio_of(amounts)
    wanted = math.ceil(again * len(amounts))
    if target.is_met(again) or _turns(ratio, again) or (wanted - current) * (again - 1.0) < 0:
        wanted = current
    return Proposal(wanted, shown, percent)


def _turns(before: float, after: float) -> bool:
    return (before - 1.0) * (after - 1.0) < 0
