"""Services: the list, and a page for each, with the external endpoint as a link that opens."""

from gpupool.console.pages.edit import edit
from gpupool.console.pages.objects import actions_of, pages_of
from gpupool.console.pages.pods import pod_table
from gpupool.console.pages.service_forms import ACTIONS as FORMS
from gpupool.console.pages.service_forms import CHANGE, create_service
from gpupool.console.pages.workload_actions import delete
from gpupool.console.parts.cells import Link, Several, Text
from gpupool.console.parts.kinds import Kind, Section
from gpupool.console.parts.table import Choice, Column, view
from gpupool.console.rights import Denied
from gpupool.console.rows.pods import PodRow, pod_row
from gpupool.console.rows.services import ServiceRow, service_row
from gpupool.console.visit import Visit
from gpupool.console.words import Translate, word
from kubeclient.objects import Obj
from kubeclient.resources import PODS, SERVICES


def _sentence(visit: Visit, rows: list[ServiceRow]) -> str:
    return visit.t(
        "Services: {all}; with an external endpoint: {reached}.",
        all=len(rows),
        reached=sum(bool(row.link) for row in rows),
    )


def _state(visit: Visit, row: ServiceRow) -> str:
    t = visit.t
    if row.link and row.awaits_balancer:
        return t(
            "It waits for a load balancer. Until then it is reached by its node port: {link}",
            link=row.link,
        )
    if row.link:
        return t("Its external endpoint is {link}.", link=row.link)
    if row.awaits_balancer:
        return t("It has no external endpoint yet. Its events may say why.")
    return t("It is reached inside of the cluster.")


def _columns(visit: Visit) -> tuple[Column[ServiceRow], ...]:
    t = visit.t
    return (
        Column("type", t("Type"), lambda row: Text(row.kind), lambda row: row.kind),
        Column("ip", t("Cluster IP"), lambda row: Text(row.cluster_ip or "–")),
        Column(
            "inside",
            t("Internal endpoint"),
            lambda row: Several(tuple(Text(each) for each in row.inside)),
        ),
        Column(
            "link",
            t("External endpoint"),
            lambda row: endpoint(t, row),
            lambda row: row.link,
        ),
    )


def endpoint(t: Translate, row: ServiceRow) -> Link | Several | Text:
    link = Link(row.link, row.link, is_outside=True)
    if row.link and row.awaits_balancer:
        return Several((link, Text(t("by its node port"))))
    return link if row.link else Text(t("Waiting") if row.awaits_balancer else "–")


async def _pods_behind(visit: Visit, _: Obj, row: ServiceRow) -> tuple[Section, ...]:
    t = visit.t
    if not row.selector:
        return (Section("pods", t("Pods behind it"), note=t("It selects no pods.")),)
    try:
        pods = await visit.rows(PODS, pod_row, row.namespace)
    except Denied as denied:
        words = t("You do not have the right: {right}", right=denied.right.words)
        return (Section("pods", t("Pods behind it"), note=words),)
    chosen = [pod for pod in pods if is_behind(row, pod)]
    return (Section("pods", t("Pods behind it"), view(pod_table(visit), chosen, {})),)


def is_behind(row: ServiceRow, pod: PodRow) -> bool:
    return set(row.selector) <= set(pod.labels)


KIND = Kind(
    resource=SERVICES,
    title=word("Services"),
    row=service_row,
    sentence=_sentence,
    state=_state,
    columns=_columns,
    words=lambda row: f"{row.kind} {row.link}",
    choices=lambda visit: (Choice("type", visit.t("Type"), lambda row: row.kind),),
    doings=(
        CHANGE,
        edit(SERVICES),
        delete(SERVICES, word("Its addresses stop answering. The pods behind it stay.")),
    ),
    creates=create_service,
    sections=_pods_behind,
)
PAGES = pages_of(KIND)
ACTIONS = (*FORMS, *actions_of(KIND))
