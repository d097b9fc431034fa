"""Events: what the cluster has said lately, and about which objects."""

from gpupool.console.pages.addresses import address_of
from gpupool.console.parts.cells import Age, Level, Link, Several, State, Text
from gpupool.console.parts.page import Page, Shown
from gpupool.console.parts.table import Choice, Column, Table, view
from gpupool.console.rows.events import EventRow, event_row
from gpupool.console.said import reason_cell, said_cell
from gpupool.console.visit import Visit
from gpupool.console.words import word
from kubeclient.resources import EVENTS

_TYPES = {"Normal": word("Normal"), "Warning": word("Warning")}


async def _show(visit: Visit) -> Shown:
    t = visit.t
    rows = await visit.rows(EVENTS, event_row)
    warnings = sum(row.is_warning for row in rows)
    where = f"--namespace {visit.namespace}" if visit.namespace else "--all-namespaces"
    return Shown(
        title=t("Events"),
        sentence=t("{all} events, {warnings} of them warnings.", all=len(rows), warnings=warnings),
        command=f"kubectl events {where}",
        table=view(_table(visit), rows, visit.query),
    )


def _table(visit: Visit) -> Table[EventRow]:
    t = visit.t

    def type_of(kind: str) -> str:
        return t(_TYPES[kind]) if kind in _TYPES else kind

    def state(row: EventRow) -> State:
        return State(Level.WAITS if row.is_warning else Level.PLAIN, type_of(row.kind))

    def about(row: EventRow) -> Several:
        href = address_of(visit, row.about_kind, row.about_namespace, row.about)
        named = Link(row.about, href) if href else Text(row.about)
        return Several((named, Text(f"{row.about_kind} {row.about_namespace}".strip())))

    return Table(
        columns=(
            Column("about", t("Object"), about, lambda row: row.about),
            Column("type", t("Type"), state, lambda row: row.kind),
            Column(
                "reason",
                t("Reason"),
                lambda row: reason_cell(t, row.reason),
                lambda row: row.reason,
            ),
            Column("message", t("Message"), lambda row: said_cell(t, row.message)),
            Column(
                "count",
                t("Times"),
                lambda row: Text(str(row.count)),
                lambda row: row.count,
                is_number=True,
            ),
            Column("last", t("Last seen"), lambda row: Age(row.last), lambda row: row.last),
        ),
        key=lambda row: f"{row.namespace}/{row.name}",
        words=lambda row: f"{row.about_namespace}/{row.about} {row.reason} {row.message}",
        choices=(
            Choice("type", t("Type"), lambda row: row.kind, type_of),
            Choice("kind", t("Kind"), lambda row: row.about_kind),
            Choice(
                "reason",
                t("Reason"),
                lambda row: row.reason,
                lambda reason: reason_cell(t, reason).text,
            ),
        ),
        order="-last",
        empty=t("Nothing has happened here lately. Events are kept for an hour."),
    )


PAGE = Page(path="events", menu="events", show=_show)
