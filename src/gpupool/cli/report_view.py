"""A report as a table, a document and CSV. Pure."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from gpupool.cli.durations import words
from gpupool.cli.output.layout import Layout
from gpupool.cli.output.pages import Line, Prose
from gpupool.cli.output.table import API_VERSION, Column, Document, Shorten, Table, Tone
from gpupool.history.advice import Advice
from gpupool.history.reader import Points
from gpupool.history.samples import Sample
from gpupool.history.usage import IdlePod, Usage, total_of, usage_of

NO_COMMAND = "(its pods have to be made anew: this share cannot be changed by a command)"
_MOST_SHOWN = 5  # of idle pods and of advice, below the table; documents have all


def hours(value: float) -> str:
    return f"{value:,.2f}" if value < 10 else f"{value:,.1f}"


class Parts(NamedTuple):
    """Hours that were given, and what became of them, rounded so that they add up."""

    given: float
    used: float
    idle: float
    unknown: float


def parts(usage: Usage, digits: int) -> Parts:
    # Sums are rounded, and differences taken: roundings of their own would not add up.
    used, known = round(usage.used, digits), round(usage.known, digits)
    given = round(usage.known + usage.unknown, digits)
    return Parts(given, used, round(known - used, digits), round(given - known, digits))


def shown_parts(usage: Usage) -> list[str]:
    """Given, used, idle and unknown for people."""
    digits = 2 if usage.given < 10 else 1
    return [f"{value:,.{digits}f}" for value in parts(usage, digits)]


def percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f}%"


def gib(mib: float) -> str:
    return f"{mib / 1024:.1f}GiB"


def stamp(at_s: float | None) -> str | None:
    if at_s is None:
        return None
    return datetime.fromtimestamp(at_s, UTC).isoformat().replace("+00:00", "Z")


def _tone(usage: Usage) -> Tone:
    found = usage.used_percent
    return Tone.FAINT if found is None else Tone.CAUTION if found < 10 else Tone.PLAIN


COLUMNS: Sequence[Column[Usage]] = (
    Column("NAME", lambda row: row.name, shorten=Shorten.MIDDLE, readable=40),
    Column("ASKED", lambda row: hours(row.asked), right=True, rank=3),
    Column("GIVEN", lambda row: shown_parts(row)[0], right=True),
    Column("USED", lambda row: shown_parts(row)[1], right=True),
    Column("USED%", lambda row: percent(row.used_percent), right=True, tone=_tone),
    Column("IDLE", lambda row: shown_parts(row)[2], right=True, rank=1),
    Column("UNKNOWN", lambda row: shown_parts(row)[3], right=True, rank=2),
    Column("GIB-HOURS", lambda row: hours(row.memory_given_gib_h), right=True, rank=5),
    Column("GIB-USED", lambda row: hours(row.memory_used_gib_h), right=True, rank=6),
    Column("PEAK", lambda row: gib(row.peak_mib), right=True, rank=4),
    Column("BEYOND", lambda row: _beyond(row.beyond), right=True, wide=True),
    Column("KWH", lambda row: hours(row.energy_kwh), right=True, wide=True),
)


def _beyond(value: float | None) -> str:
    return "unknown" if value is None else hours(value)


def usage_fields(usage: Usage) -> Document:
    given, used, idle, unknown = parts(usage, 4)
    return {
        "name": usage.name,
        "askedGpuHours": round(usage.asked, 4),
        "givenGpuHours": given,
        "knownGpuHours": round(used + idle, 4),
        "unknownGpuHours": unknown,
        "usedGpuHours": used,
        "idleGpuHours": idle,
        "beyondGpuHours": None if usage.beyond is None else round(usage.beyond, 4),
        "usedPercent": None if usage.used_percent is None else round(usage.used_percent, 2),
        "memoryGivenGiBHours": round(usage.memory_given_gib_h, 3),
        "memoryUsedGiBHours": round(usage.memory_used_gib_h, 3),
        "memoryPeakMiB": usage.peak_mib,
        "energyKWh": round(usage.energy_kwh, 3),
    }


def idle_fields(pod: IdlePod) -> Document:
    return {
        "namespace": pod.namespace,
        "pod": pod.pod,
        "container": pod.container,
        "node": pod.node,
        "workload": pod.workload,
        "user": pod.user or None,
        "cards": pod.cards,
        "gpus": round(pod.held_cards, 3),
        "memoryMiB": pod.memory_mib,
        "lastActive": stamp(pod.active_s),
        "idleSince": stamp(pod.since_s),
    }


def advice_fields(advice: Advice) -> Document:
    return {
        "namespace": advice.namespace,
        "workload": advice.workload,
        "container": advice.container,
        "askedUnits": advice.units_now,
        "askedMiB": advice.mib_now,
        "peakMiB": advice.peak_mib,
        "days": round(advice.days, 2),
        "units": advice.units,
        "command": advice.command,
    }


@dataclass(frozen=True, slots=True)
class Report:
    by: str
    asked_s: int  # how far back
    since_s: int  # begins with a slot of the history, so it may be a little earlier
    until_s: int
    rows: Sequence[Usage]
    cluster: Sample | None
    points: Points  # of the cluster
    idle: Sequence[IdlePod]
    advice: Sequence[Advice]

    def table(self) -> Table[Usage]:
        return Table("Usage", COLUMNS, self.rows, usage_fields)

    def lines(self, layout: Layout) -> list[str]:
        prose = Prose("Report", self._text())
        return [*self.table().lines(layout), *prose.lines(layout)]

    def document(self) -> Document:
        return {
            "apiVersion": API_VERSION,
            "kind": "Report",
            "by": self.by,
            "since": stamp(self.since_s),
            "until": stamp(self.until_s),
            "existingGpuHours": None
            if self.cluster is None
            else round(self.cluster.have / 3.6e6, 4),
            "total": usage_fields(total_of(self.rows)),
            "items": [usage_fields(row) for row in self.rows],
            "idle": [idle_fields(each) for each in self.idle],
            "advice": [advice_fields(each) for each in self.advice],
        }

    def names(self) -> list[str]:
        return [row.name for row in self.rows]

    def missing(self) -> str:
        if self.rows:
            return ""
        return "No pod had a card in this time, as far as the history goes. It has a line a minute."

    def _text(self) -> list[Line]:
        seen_s = 0 if self.cluster is None else self.cluster.seen / 1000
        given, used, idle, unknown = shown_parts(total_of(self.rows))
        lines = [
            Line(""),
            Line(
                f"GPU-hours of the last {words(self.asked_s)}: {given} given = {used} used "
                f"+ {idle} idle + {unknown} unknown.{self._cluster()}"
            ),
        ]
        if self.asked_s - seen_s > 120:
            lines.append(Line(f"The history knows {words(seen_s)} of it; the rest is unknown."))
        if self.idle:
            held = sum(pod.held_cards for pod in self.idle)
            lines += [Line(""), Line(f"Idle, and holding {held:.1f} GPUs ({len(self.idle)}):")]
            lines += [Line(f"  {idle_words(pod)}", indent=4) for pod in self.idle[:_MOST_SHOWN]]
            lines += _more(len(self.idle))
        if self.advice:
            lines += [Line(""), Line(f"Could do with less ({len(self.advice)}):")]
            for each in self.advice[:_MOST_SHOWN]:
                lines.append(Line(f"  {each.namespace}/{each.workload} {each.words}", indent=4))
                command = f"    {each.command or NO_COMMAND}"
                lines.append(Line(command, indent=6, is_command=each.command is not None))
            lines += _more(len(self.advice))
        return lines

    def _cluster(self) -> str:
        if self.cluster is None or not self.cluster.have:
            return ""
        given = 100 * self.cluster.given / self.cluster.have
        used = percent(100 * self.cluster.used / self.cluster.told if self.cluster.told else None)
        return f" Of the time of all cards, {given:.0f}% was given, {used} used."


def idle_words(pod: IdlePod) -> str:
    owner = f" of {pod.user}" if pod.user else ""
    last = "never used it" if pod.active_s is None else f"last used it {stamp(pod.active_s)}"
    return f"{pod.namespace}/{pod.pod} ({pod.workload}{owner}), {pod.held_cards:.2g} GPU, {last}"


def _more(count: int) -> list[Line]:
    left = count - _MOST_SHOWN
    return [Line(f"  and {left} more; -o json lists all.", Tone.FAINT, 80)] if left > 0 else []


def csv_text(report: Report) -> str:
    out = io.StringIO()
    names = list(usage_fields(usage_of("", Sample())))
    writer = csv.DictWriter(out, [report.by if name == "name" else name for name in names])
    writer.writeheader()
    for row in report.rows:
        fields = usage_fields(row)
        fields = {report.by if name == "name" else name: _safe(x) for name, x in fields.items()}
        writer.writerow(fields)
    return out.getvalue()


def _safe(value: object) -> object:
    """A spreadsheet takes a text that begins so for a formula, and names come from strangers."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" else value
