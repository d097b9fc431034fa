"""What reports say: hours asked for, given, used and idle, and which pods are idle. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpupool.history.samples import Sample
from gpupool.history.series import Series

_MS_PER_HOUR = 3_600_000
_MIB_S_PER_GIB_H = 1024 * 3600
_IDLE_KNOWN = 0.9  # of the time in question: otherwise nobody knows whether a pod was idle
_LATE_S = 120  # so old may the newest sample be


@dataclass(frozen=True, slots=True)
class Usage:
    """Card-hours, unless the name says something else. Given is used + idle + unknown."""

    name: str
    asked: float
    given: float
    used: float  # of `given`: kernels ran
    idle: float  # of `given`: none did
    unknown: float  # of `given`: nobody told
    # Used and not given: by shares without a limit of compute. None: cards do not tell it apart.
    beyond: float | None
    memory_given_gib_h: float
    memory_used_gib_h: float
    peak_mib: int
    energy_kwh: float

    @property
    def known(self) -> float:
        return self.used + self.idle

    @property
    def used_percent(self) -> float | None:
        """Of what was given, in the time that somebody told it; None: nobody did."""
        return 100 * self.used / self.known if self.known else None


def usage_of(name: str, sample: Sample) -> Usage:
    # Slots round each figure for itself: in a sum they can be some milliseconds apart.
    known = min(sample.known, sample.given)
    within = min(sample.within, known)
    return Usage(
        name,
        sample.asked / _MS_PER_HOUR,
        sample.given / _MS_PER_HOUR,
        within / _MS_PER_HOUR,
        (known - within) / _MS_PER_HOUR,
        (sample.given - known) / _MS_PER_HOUR,
        None if sample.have else max(0, sample.used - sample.within) / _MS_PER_HOUR,
        sample.memory_given / _MIB_S_PER_GIB_H,
        sample.memory_used / _MIB_S_PER_GIB_H,
        sample.peak,
        sample.energy / 3_600_000,
    )


def total_of(rows: Sequence[Usage]) -> Usage:
    """The sum of lines. Each pod is in one of them, whatever makes a line."""
    beyond = [row.beyond for row in rows if row.beyond is not None]
    return Usage(
        "",
        sum(row.asked for row in rows),
        sum(row.given for row in rows),
        sum(row.used for row in rows),
        sum(row.idle for row in rows),
        sum(row.unknown for row in rows),
        sum(beyond) if len(beyond) == len(rows) else None,
        sum(row.memory_given_gib_h for row in rows),
        sum(row.memory_used_gib_h for row in rows),
        max((row.peak_mib for row in rows), default=0),
        sum(row.energy_kwh for row in rows),
    )


@dataclass(frozen=True, slots=True)
class IdlePod:
    """A container that holds cards and does not use them."""

    namespace: str
    pod: str
    container: str
    node: str
    workload: str
    user: str
    cards: int
    memory_mib: int
    held_cards: float  # parts of cards, now
    active_s: int | None  # when it last used them; None: never, as far as it is known
    since_s: int  # since when it is known to be idle


def idle_pods(
    containers: Iterable[tuple[Series, Sample]],
    running: Mapping[str, float],
    since_s: int,
    until_s: int,
) -> list[IdlePod]:
    """Containers that held cards since `since_s` and did not use them. `containers`: with their
    sums from then until now, `until_s`. `running`: those that hold cards now, with the time since
    when."""
    found = []
    for series, sample in containers:
        began_s = running.get(series.name)
        if began_s is None or began_s > since_s:
            continue
        if not _all_idle(sample, until_s - since_s):
            continue
        namespace, pod, container = series.name.split("/", 2)
        info, active_s = series.info, series.active_s
        if active_s is not None and active_s < began_s:
            active_s = None  # of an earlier pod of this name
        if active_s is not None and active_s > since_s:
            continue  # it worked while nobody looked: the agent told so later
        found.append(
            IdlePod(
                namespace,
                pod,
                container,
                str(info.get("node", "")),
                str(info.get("workload", "")),
                str(info.get("user", "")),
                _number(info, "cards"),
                _number(info, "memoryMiB"),
                _number(info, "milliCards") / 1000 or sample.given / max(sample.seen, 1),
                active_s,
                active_s or int(max(began_s, series.first_s)),
            )
        )
    return sorted(found, key=lambda each: (-each.held_cards, each.since_s, each.pod))


def _all_idle(sample: Sample, length_s: int) -> bool:
    """Seen and told nearly all of the time, and whatever was told was idle."""
    if not sample.given or sample.seen < _IDLE_KNOWN * 1000 * (length_s - _LATE_S):
        return False
    return sample.told >= _IDLE_KNOWN * sample.given and sample.idle >= sample.told


def _number(info: Mapping[str, str | int], name: str) -> int:
    found = info.get(name, 0)
    return found if isinstance(found, int) else 0
