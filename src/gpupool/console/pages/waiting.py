"""Waiting: pods without a node, those that have waited longest first, and why they wait."""

from gpupool.console.gpus import asked_words
from gpupool.console.parts.cells import Age, Link, Text
from gpupool.console.parts.page import Page, Shown
from gpupool.console.parts.table import Column, Table, view
from gpupool.console.rows.pods import PodRow, pod_row
from gpupool.console.said import said, shortly
from gpupool.console.visit import Visit
from gpupool.console.words import Translate
from kubeclient.resources import PODS


async def _show(visit: Visit) -> Shown:
    t = visit.t
    rows = [row for row in await visit.rows(PODS, pod_row) if row.waits]
    sentence = t("Waiting pods: {count}.", count=len(rows)) if rows else t("No pod waits.")
    table = Table[PodRow](
        columns=(
            Column(
                "name",
                t("Pod"),
                lambda row: Link(
                    f"{row.namespace}/{row.name}", visit.link("pods", row.namespace, row.name)
                ),
                lambda row: (row.namespace, row.name),
            ),
            Column("asks", t("Asks for"), lambda row: Text(asked_words(t, row.asks) or "–")),
            Column("created", t("Since"), lambda row: Age(row.created), lambda row: row.created),
            Column("why", t("Because"), lambda row: _why(t, row)),
        ),
        key=lambda row: f"{row.namespace}/{row.name}",
        words=lambda row: f"{row.namespace}/{row.name} {row.why}",
        order="created",
        empty=t("No pod waits. All that was submitted has a node."),
    )
    return Shown(
        title=t("Waiting"),
        sentence=sentence,
        command="kubectl get pods --all-namespaces --field-selector spec.nodeName=",
        table=view(table, rows, visit.query),
    )


def _why(t: Translate, row: PodRow) -> Text:
    return Text(shortly(t, row.why) or "–", said(t, row.why))


PAGE = Page(path="waiting", menu="waiting", show=_show)
