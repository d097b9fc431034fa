"""Advice: workloads that could do with a smaller share, and the command that makes it so. Pure.

What it is about is there now: nobody can change a pod that is gone. What it is made from is the
history: a share that was too large yesterday may have been needed the day before.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import NamedTuple

from gpupool.history.facts import Held
from gpupool.history.samples import Sample
from gpupool.history.series import Series

# What is advised has this much more than the highest peak.
_ROOM = 1.2
_KNOWN = 0.8  # of the time that cards were held: less is too little to advise from
_LEAST_S = 3600  # so long a workload must have run
# Their template can be changed by kubectl, and new pods take the place of the old ones. That of a
# Job cannot, and kubectl does not know the template of a custom kind.
_SETTABLE = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController")


class _Which(NamedTuple):
    namespace: str
    workload: str  # KIND/NAME
    container: str


@dataclass(frozen=True, slots=True)
class Advice:
    """A workload that could do with less."""

    namespace: str
    workload: str  # KIND/NAME
    container: str
    units_now: int
    mib_now: int
    peak_mib: int
    days: float  # of how long this is known
    units: int  # would do
    command: str | None  # None: no command can change it, its pods have to be made anew

    @property
    def words(self) -> str:
        asks, peak = self.mib_now / 1024, self.peak_mib / 1024
        return (
            f"asks {asks:.1f} GiB ({self.units_now} units), peak {peak:.1f} GiB "
            f"in {_time(self.days)}: {self.units} would do"
        )


def _time(days: float) -> str:
    if days < 1:
        return f"{days * 24:.0f} h"
    return f"{days:.0f} day{'' if round(days) == 1 else 's'}"


def advices(
    containers: Iterable[tuple[Series, Sample]],
    workloads: Mapping[str, Sample],
    held: Iterable[Held],
) -> list[Advice]:
    """For workloads that share cards; what saves most comes first. `containers` and `workloads`:
    their sums; `held`: what holds cards now."""
    now: defaultdict[_Which, list[Held]] = defaultdict(list)
    for each in held:
        if each.asked_units and each.shares:
            now[_Which(each.namespace, each.workload, each.container)].append(each)
    past: defaultdict[_Which, list[Sample]] = defaultdict(list)
    for series, sample in containers:
        namespace, _, container = series.name.split("/", 2)
        which = _Which(namespace, str(series.info.get("workload", "")), container)
        if which in now:
            past[which].append(sample)
    found = []
    for which, samples in past.items():
        ran = workloads.get(f"{which.namespace}/{which.workload}", Sample()).seen / 1000
        found.append(_advice(which, samples, now[which], ran))
    kept = [each for each in found if each is not None]
    return sorted(kept, key=lambda each: (each.units - each.units_now, each.workload))


def _advice(
    which: _Which, past: Sequence[Sample], now: Sequence[Held], ran_s: float
) -> Advice | None:
    given, known = sum(each.given for each in past), sum(each.known for each in past)
    peak_mib = max(each.peak for each in past)  # on one card
    if ran_s < _LEAST_S or known < _KNOWN * given or not peak_mib:
        return None  # too little is known, or it is not too large, but idle
    newest = max(now, key=lambda each: each.from_ms)
    units = sum(share.units for share in newest.shares)
    unit_mib = newest.shares[0].memory_mib // max(newest.shares[0].units, 1)
    if not unit_mib:
        return None
    enough = max(1, math.ceil(peak_mib * _ROOM / unit_mib)) * len(newest.shares)
    if enough >= units:
        return None
    command = _command(which, newest, enough)
    return Advice(*which, units, units * unit_mib, peak_mib, ran_s / 86400, enough, command)


def _command(which: _Which, held: Held, units: int) -> str | None:
    namespace, workload, container = which
    kind, _, name = workload.partition("/")
    if kind in _SETTABLE and held.in_template:
        # Nothing checks what a pod says of its owner, and people paste this. Both, as Kubernetes
        # takes no limit of such a resource beside another request.
        what, amount = quote(f"{kind.lower()}/{name}"), f"aliyun.com/gpu-mem={units}"
        return (
            f"kubectl -n {namespace} set resources {what} -c {container} "
            f"--requests={amount} --limits={amount}"
        )
    if held.can_resize:
        where = f"-n {namespace} -c {container}"
        return f"gpupool resize {quote(held.pod)} {where} --gpu-mem {units}"
    return None
