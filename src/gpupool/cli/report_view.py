"""A report as a table, a document and CSV. Pure."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from gpupool.cli.durations import words
from gpupool.cli.output.layout import Layout
from gpupool.cli.output.pages import Line, Prose
from gpupool.cli.output.table import API_VERSION, Column, Document, Shorten, Table, Tone
from gpupool.history.reader import Points
from gpupool.history.samples import Sample
from gpupool.history.usage import Advice, IdlePod, Usage, usage_of

_MOST_SHOWN = 5  # of idle pods and of advice, below the table; documents have all


def hours(value: float) -> str:
    return f"{value:,.2f}" if value < 10 else f"{value:,.1f}"


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
    Column("ASKED", lambda row: hours(row.asked), right=True, rank=2),
    Column("GIVEN", lambda row: hours(row.given), right=True),
    Column("USED", lambda row: hours(row.used), right=True),
    Column("USED%", lambda row: percent(row.used_percent), right=True, tone=_tone),
    Column("IDLE", lambda row: hours(row.idle), right=True, rank=1),
    Column("UNKNOWN", lambda row: hours(row.unknown), right=True, rank=4),
    Column("GIB-HOURS", lambda row: hours(row.memory_given_gib_h), right=True, rank=5),
    Column("GIB-USED", lambda row: hours(row.memory_used_gib_h), right=True, rank=6),
    Column("PEAK", lambda row: gib(row.peak_mib), right=True, rank=3),
    Column("KWH", lambda row: f"{row.energy_kwh:.1f}", right=True, wide=True),
)


def usage_fields(usage: Usage) -> Document:
    return {
        "name": usage.name,
        "askedGpuHours": round(usage.asked, 4),
        "givenGpuHours": round(usage.given, 4),
        "knownGpuHours": round(usage.told, 4),
        "unknownGpuHours": round(usage.unknown, 4),
        "usedGpuHours": round(usage.used, 4),
        "idleGpuHours": round(usage.idle, 4),
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
        "askedUnits": advice.asked_units,
        "askedMiB": advice.asked_mib,
        "peakMiB": advice.peak_mib,
        "days": round(advice.days, 2),
        "units": advice.units,
        "command": advice.command,
    }


@dataclass(frozen=True, slots=True)
class Report:
    by: str
    since_s: int
    until_s: int
    rows: Sequence[Usage]
    total: Sample | None  # of the cluster
    points: Points  # of the cluster
    idle: Sequence[IdlePod]
    advice: Sequence[Advice]

    def table(self) -> Table[Usage]:
        return Table("Usage", COLUMNS, self.rows, usage_fields)

    def lines(self, layout: Layout) -> list[str]:
        prose = Prose("Report", self._text())
        return [*self.table().lines(layout), *prose.lines(layout)]

    def document(self) -> Document:
        total = None if self.total is None else usage_of("", self.total)
        return {
            "apiVersion": API_VERSION,
            "kind": "Report",
            "by": self.by,
            "since": stamp(self.since_s),
            "until": stamp(self.until_s),
            "existingGpuHours": None if self.total is None else round(self.total.have / 3.6e6, 4),
            "total": None if total is None else usage_fields(total),
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
        seen_s = 0 if self.total is None else self.total.seen / 1000
        asked_s = self.until_s - self.since_s
        lines = [Line(""), Line(f"GPU-hours of the last {words(asked_s)}.{self._cluster()}")]
        if asked_s - seen_s > 120:
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
                lines.append(Line(f"    {each.command}", Tone.FAINT, 0, 6))
            lines += _more(len(self.advice))
        return lines

    def _cluster(self) -> str:
        if self.total is None or not self.total.have:
            return ""
        given = 100 * self.total.given / self.total.have
        used = percent(100 * self.total.used / self.total.told if self.total.told else None)
        return f" Of all cards, {given:.0f}% were given, {used} used."


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
