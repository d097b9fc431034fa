"""Deployments and StatefulSets: lists; scale, restart, delete."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from gpupool.console.pages.create import create_action
from gpupool.console.parts.action import Action, Done, Question
from gpupool.console.parts.cells import Age, Level, Several, State, Text
from gpupool.console.parts.form import Field, FieldKind
from gpupool.console.parts.page import Page, Shown
from gpupool.console.parts.table import Column, RowAction, Table, view
from gpupool.console.rights import Right
from gpupool.console.rows.workloads import WorkloadRow, workload_row
from gpupool.console.visit import Visit
from gpupool.console.words import word
from kubeclient.resources import DEPLOYMENTS, STATEFUL_SETS, Resource

_RESTARTED = "kubectl.kubernetes.io/restartedAt"  # as `kubectl rollout restart` does it
_MOST_REPLICAS = 100_000


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of workload. Pages and actions are the same for all of them."""

    resource: Resource
    title: str

    @property
    def path(self) -> str:
        return self.resource.plural

    @property
    def command(self) -> str:
        """Its name for kubectl."""
        return self.resource.kind.lower()

    def page(self) -> Page:
        return Page(path=self.path, menu=self.path, show=self._show)

    def actions(self) -> tuple[Action, ...]:
        at, menu = f"{self.path}/{{namespace}}/{{name}}", self.path
        return (
            Action(f"{at}/scale", menu, self._patch_right, self._ask_scale, self._scale),
            Action(f"{at}/restart", menu, self._patch_right, self._ask_restart, self._restart),
            Action(f"{at}/delete", menu, self._delete_right, self._ask_delete, self._delete),
        )

    async def _show(self, visit: Visit) -> Shown:
        t, namespace = visit.t, visit.namespace
        rows = await visit.rows(self.resource, workload_row)
        may_patch = await visit.lacks(Right("patch", self.resource, namespace))
        may_delete = await visit.lacks(Right("delete", self.resource, namespace))
        ready = sum(row.ready >= row.wanted for row in rows)
        where = f"--namespace {namespace}" if namespace else "--all-namespaces"
        return Shown(
            title=t(self.title),
            sentence=t("{ready} of {all} have all their pods.", ready=ready, all=len(rows)),
            actions=(create_action(visit),),
            command=f"kubectl get {self.path} {where}",
            table=view(self._table(visit, may_patch, may_delete), rows, visit.query),
        )

    def _table(self, visit: Visit, may_patch: str, may_delete: str) -> Table[WorkloadRow]:
        t = visit.t

        def actions(row: WorkloadRow) -> tuple[RowAction, ...]:
            at = (self.path, row.namespace, row.name)
            return (
                RowAction(t("Scale"), visit.link(*at, "scale"), may_patch),
                RowAction(t("Restart"), visit.link(*at, "restart"), may_patch),
                RowAction(t("Delete"), visit.link(*at, "delete"), may_delete, is_dangerous=True),
            )

        return Table(
            columns=(
                Column("name", t("Name"), lambda row: Text(row.name), lambda row: row.name),
                Column(
                    "in", t("Namespace"), lambda row: Text(row.namespace), lambda row: row.namespace
                ),
                Column("pods", t("Pods"), _pods, lambda row: row.wanted - row.ready),
                Column(
                    "image",
                    t("Image"),
                    lambda row: Several(tuple(Text(each) for each in row.images)),
                ),
                Column("created", t("Age"), lambda row: Age(row.created), lambda row: row.created),
            ),
            key=lambda row: f"{row.namespace}/{row.name}",
            words=lambda row: f"{row.namespace}/{row.name} {' '.join(row.images)}",
            actions=actions,
            order="name",
            empty=t("There are none here yet."),
            empty_action=create_action(visit),
        )

    # -- actions -------------------------------------------------------------------------------

    def _patch_right(self, visit: Visit) -> tuple[Right, ...]:
        return (Right("patch", self.resource, visit.names["namespace"]),)

    def _delete_right(self, visit: Visit) -> tuple[Right, ...]:
        return (Right("delete", self.resource, visit.names["namespace"]),)

    async def _ask_scale(self, visit: Visit) -> Question:
        t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
        now = (await visit.kube.get(self.resource, name, namespace))["spec"].get("replicas", 1)
        return Question(
            title=t("Scale {name}", name=name),
            button=t("Scale"),
            fields=(
                Field(
                    "replicas",
                    t("Pods wanted"),
                    FieldKind.NUMBER,
                    value=str(now),
                    is_required=True,
                    least=0,
                    most=_MOST_REPLICAS,
                ),
            ),
            command=f"kubectl scale {self.command} {name} --replicas=N --namespace {namespace}",
        )

    async def _scale(self, visit: Visit, values: Mapping[str, str]) -> Done:
        wanted = int(values["replicas"])
        await self._patch(visit, {"spec": {"replicas": wanted}})
        words = visit.t("{name} is to have {count} pods.", name=visit.names["name"], count=wanted)
        return Done(visit.link(self.path), words)

    async def _ask_restart(self, visit: Visit) -> Question:
        t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
        return Question(
            title=t("Restart {name}", name=name),
            sentence=t("Its pods are replaced one after another."),
            button=t("Restart {name}", name=name),
            command=f"kubectl rollout restart {self.command} {name} --namespace {namespace}",
        )

    async def _restart(self, visit: Visit, _: Mapping[str, str]) -> Done:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        annotations = {"metadata": {"annotations": {_RESTARTED: now}}}
        await self._patch(visit, {"spec": {"template": annotations}})
        words = visit.t("The pods of {name} are being replaced.", name=visit.names["name"])
        return Done(visit.link(self.path), words)

    async def _ask_delete(self, visit: Visit) -> Question:
        t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
        return Question(
            title=t("Delete {name}", name=name),
            sentence=t("It is deleted with all its pods."),
            button=t("Delete {name}", name=name),
            is_dangerous=True,
            typed_name=name,
            command=f"kubectl delete {self.command} {name} --namespace {namespace}",
        )

    async def _delete(self, visit: Visit, _: Mapping[str, str]) -> Done:
        namespace, name = visit.names["namespace"], visit.names["name"]
        options = {"propagationPolicy": "Background"}
        await visit.kube.delete(self.resource, name, namespace, options=options)
        return Done(visit.link(self.path), visit.t("{name} is being deleted.", name=name))

    async def _patch(self, visit: Visit, patch: object) -> None:
        path = self.resource.path(visit.names["namespace"], visit.names["name"])
        await visit.kube.patch(path, patch)


def _pods(row: WorkloadRow) -> State:
    if row.is_ending:
        return State(Level.PLAIN, f"{row.ready}/{row.wanted}")
    level = Level.GOOD if row.ready >= row.wanted else Level.WAITS
    return State(level, f"{row.ready}/{row.wanted}")


KINDS = (
    Kind(DEPLOYMENTS, word("Deployments")),
    Kind(STATEFUL_SETS, word("StatefulSets")),
)
PAGES = tuple(kind.page() for kind in KINDS)
ACTIONS = tuple(action for kind in KINDS for action in kind.actions())
