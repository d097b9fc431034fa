"""What pages show of the past: figures of the history, and the charts of a pod, node or cluster."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from gpupool.console.chart import Chart, Series, chart
from gpupool.console.rows.pods import PodRow
from gpupool.console.visit import Visit
from gpupool.console.words import word
from gpupool.history.reader import Points
from gpupool.history.samples import Sample
from gpupool.history.series import Kind

HOUR_S, DAY_S = 3600, 86_400
# What the address says, in words, and in seconds.
RANGES: Mapping[str, tuple[str, int]] = {
    "1h": (word("1 hour"), HOUR_S),
    "6h": (word("6 hours"), 6 * HOUR_S),
    "1d": (word("1 day"), DAY_S),
    "7d": (word("7 days"), 7 * DAY_S),
    "30d": (word("30 days"), 30 * DAY_S),
}
_FIRST = "1h"


@dataclass(frozen=True, slots=True)
class Past:
    """Charts of one thing, and how to see more or less of its past."""

    charts: tuple[Chart, ...]
    ranges: tuple[tuple[str, str, bool], ...]  # text, address, whether it is this one
    why_not: str = ""  # there is no history to read
    peak: str = ""


async def past_of_cards(visit: Visit, kind: Kind, name: str, page: tuple[str, ...]) -> Past:
    """Of the cluster, a node or a card: allocated and used memory, and how busy. `page`: where it
    stands."""
    t = visit.t
    points, why_not = await visit.history(kind, name, _span_s(visit))
    if points is None:
        return Past((), (), visit.t(why_not))
    allocated = Series(t("Allocated"), "allocated", _given_gib)
    used = Series(t("Used"), "used", _used_gib)
    busy = Series(t("Utilisation"), "busy", _busy_percent)
    return Past(
        (
            chart("past-memory", t("Memory"), "GiB", points, (allocated, used)),
            chart("past-busy", t("Utilisation"), "%", points, (busy,)),
        ),
        _ranges(visit, page),
    )


async def past_of_pod(visit: Visit, row: PodRow, page: tuple[str, ...]) -> Past | None:
    """Of each container with cards. None: it has none."""
    asked = Counter(share.container for share in row.shares)
    charts: list[Chart] = []
    peak = 0
    for container, cards in asked.items():
        name = f"{row.namespace}/{row.name}/{container}"
        points, why_not = await visit.history(Kind.CONTAINER, name, _span_s(visit))
        if points is None:
            return Past((), (), visit.t(why_not))
        charts.extend(_container_charts(visit, container, points, cards))
        peak = max([peak, *(sample.peak for sample in points.values if sample)])
    words = visit.t("Peak: {peak} MiB on one card.", peak=peak) if peak else ""
    return Past(tuple(charts), _ranges(visit, page), peak=words) if asked else None


def _container_charts(
    visit: Visit, container: str, points: Points, cards: int
) -> tuple[Chart, Chart]:
    t = visit.t
    share = Series(t("Share"), "share", _share_gib)
    used = Series(t("Used"), "used", _used_of_container)
    busy = Series(t("Utilisation"), "busy", lambda sample: _busy_of(sample, cards))
    memory, compute = f"{container}: {t('Memory')}", f"{container}: {t('Utilisation')}"
    return (
        chart(f"past-memory-{container}", memory, "GiB", points, (share, used)),
        chart(f"past-busy-{container}", compute, "%", points, (busy,)),
    )


def _span_s(visit: Visit) -> int:
    return RANGES.get(visit.query.get("range", ""), RANGES[_FIRST])[1]


def _ranges(visit: Visit, page: tuple[str, ...]) -> tuple[tuple[str, str, bool], ...]:
    chosen = visit.query.get("range", "")
    chosen = chosen if chosen in RANGES else _FIRST
    return tuple(
        (visit.t(words), visit.link(*page, **{**visit.query, "range": key}), key == chosen)
        for key, (words, _) in RANGES.items()
    )


# -- figures: averages over the time in which somebody told them --------------------------------


def _given_gib(sample: Sample) -> float | None:
    return sample.memory_given / (sample.seen / 1000) / 1024 if sample.seen else None


def _used_gib(sample: Sample) -> float | None:
    """Of cards, in the time of which their agents told."""
    if not sample.told or not sample.have or not sample.seen:
        return None
    return sample.memory_used / (sample.seen / 1000 * sample.told / sample.have) / 1024


def _busy_percent(sample: Sample) -> float | None:
    return min(100.0, 100 * sample.used / sample.told) if sample.told else None


def _used_of_container(sample: Sample) -> float | None:
    if not sample.told or not sample.given or not sample.seen:
        return None
    return sample.memory_used / (sample.seen / 1000 * sample.told / sample.given) / 1024


def _share_gib(sample: Sample) -> float | None:
    """Of a container, while it had one."""
    return _given_gib(sample) if sample.given else None


def _busy_of(sample: Sample, cards: int) -> float | None:
    """The time in which its kernels ran, of all time on its cards."""
    if not sample.told or not sample.given or not sample.seen:
        return None
    return min(100.0, 100 * sample.used / (sample.seen * cards * sample.told / sample.given))
