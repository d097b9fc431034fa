"""What can be done to a pod."""

from collections.abc import Mapping

from gpupool.console.pages.pod_places import exec_rights, log_rights
from gpupool.console.parts.action import Action, Done, Question
from gpupool.console.parts.table import RowAction
from gpupool.console.rights import Right
from gpupool.console.rows.pods import PodRow
from gpupool.console.visit import Visit
from kubeclient.resources import PODS


def pod_actions(visit: Visit, row: PodRow, lacks: str) -> tuple[RowAction, ...]:
    href = visit.link("pods", row.namespace, row.name, "delete")
    return (RowAction(visit.t("Delete"), href, lacks, is_dangerous=True),)


async def pod_looks(visit: Visit, row: PodRow) -> tuple[RowAction, ...]:
    """The ways into the pod: its logs, and a shell in it."""
    t = visit.t
    no_logs = await visit.lacks(*log_rights(row.namespace))
    no_shell = await visit.lacks(*exec_rights(row.namespace))
    no_place = "" if row.node else t("It has no node yet.")
    no_life = t("It has ended.") if row.is_over else no_place
    logs = visit.link("pods", row.namespace, row.name, "logs")
    terminal = visit.link("pods", row.namespace, row.name, "terminal")
    return (
        RowAction(t("Logs"), logs, no_logs or no_place, is_page=True),
        RowAction(t("Terminal"), terminal, no_shell or no_life, is_page=True),
    )


def _delete_rights(visit: Visit) -> tuple[Right, ...]:
    return (Right("delete", PODS, visit.names["namespace"]),)


async def _ask_delete(visit: Visit) -> Question:
    t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
    return Question(
        title=t("Delete pod {name}", name=name),
        sentence=t("Its containers end. If it belongs to a workload, a new pod takes its place."),
        button=t("Delete pod {name}", name=name),
        is_dangerous=True,
        command=f"kubectl delete pod {name} --namespace {namespace}",
    )


async def _delete(visit: Visit, _: Mapping[str, str]) -> Done:
    t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
    await visit.kube.delete(PODS, name, namespace)
    return Done(visit.link("pods"), t("Pod {name} is being deleted.", name=name))


DELETE = Action("pods/{namespace}/{name}/delete", "pods", _delete_rights, _ask_delete, _delete)
ACTIONS = (DELETE,)
