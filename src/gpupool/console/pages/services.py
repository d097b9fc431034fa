"""Services: the list, with the external endpoint as a link that opens; and deleting one."""

from collections.abc import Mapping

from gpupool.console.parts.action import Action, Done, Question
from gpupool.console.parts.cells import Age, Link, Several, Text
from gpupool.console.parts.page import Page, Shown
from gpupool.console.parts.table import Choice, Column, RowAction, Table, view
from gpupool.console.rights import Right
from gpupool.console.rows.services import ServiceRow, service_row
from gpupool.console.visit import Visit
from kubeclient.resources import SERVICES


async def _show(visit: Visit) -> Shown:
    t = visit.t
    rows = await visit.rows(SERVICES, service_row)
    lacks = await visit.lacks(Right("delete", SERVICES, visit.namespace))
    reached = sum(bool(row.link) for row in rows)
    where = f"--namespace {visit.namespace}" if visit.namespace else "--all-namespaces"
    return Shown(
        title=t("Services"),
        sentence=t(
            "{all} services, {reached} of them with an external endpoint.",
            all=len(rows),
            reached=reached,
        ),
        command=f"kubectl get services {where}",
        table=view(_table(visit, lacks), rows, visit.query),
    )


def _table(visit: Visit, lacks: str) -> Table[ServiceRow]:
    t = visit.t

    def actions(row: ServiceRow) -> tuple[RowAction, ...]:
        href = visit.link("services", row.namespace, row.name, "delete")
        return (RowAction(t("Delete"), href, lacks, is_dangerous=True),)

    return Table(
        columns=(
            Column("name", t("Name"), lambda row: Text(row.name), lambda row: row.name),
            Column(
                "in", t("Namespace"), lambda row: Text(row.namespace), lambda row: row.namespace
            ),
            Column("type", t("Type"), lambda row: Text(row.kind), lambda row: row.kind),
            Column("ip", t("Cluster IP"), lambda row: Text(row.cluster_ip or "–")),
            Column(
                "inside",
                t("Internal endpoint"),
                lambda row: Several(tuple(Text(each) for each in row.inside)),
            ),
            Column("link", t("External endpoint"), _endpoint, lambda row: row.link),
            Column("created", t("Age"), lambda row: Age(row.created), lambda row: row.created),
        ),
        key=lambda row: f"{row.namespace}/{row.name}",
        words=lambda row: f"{row.namespace}/{row.name} {row.kind} {row.link}",
        choices=(Choice("type", t("Type"), lambda row: row.kind),),
        actions=actions,
        order="name",
        empty=t("There are no services here."),
    )


def _endpoint(row: ServiceRow) -> Link | Text:
    return Link(row.link, row.link, is_outside=True) if row.link else Text("–")


def _delete_rights(visit: Visit) -> tuple[Right, ...]:
    return (Right("delete", SERVICES, visit.names["namespace"]),)


async def _ask_delete(visit: Visit) -> Question:
    t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
    return Question(
        title=t("Delete service {name}", name=name),
        sentence=t("Its addresses stop answering. The pods behind it stay."),
        button=t("Delete service {name}", name=name),
        is_dangerous=True,
        command=f"kubectl delete service {name} --namespace {namespace}",
    )


async def _delete(visit: Visit, _: Mapping[str, str]) -> Done:
    t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
    await visit.kube.delete(SERVICES, name, namespace)
    return Done(visit.link("services"), t("Service {name} is deleted.", name=name))


PAGE = Page(path="services", menu="services", show=_show)
ACTIONS = (
    Action("services/{namespace}/{name}/delete", "services", _delete_rights, _ask_delete, _delete),
)
