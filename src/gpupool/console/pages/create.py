"""Create from template: a manifest in an editor, tried by the API server, and applied."""

from collections.abc import Mapping

from gpupool.console.complaints import BadManifest, errors_of
from gpupool.console.manifests import Planned, apply, planned, try_out
from gpupool.console.parts.action import Action, Checked, Done, Question
from gpupool.console.parts.form import Field, FieldKind, Invalid
from gpupool.console.parts.table import RowAction
from gpupool.console.rights import Right
from gpupool.console.starters import STARTERS
from gpupool.console.visit import Visit
from kubeclient.resources import DEPLOYMENTS, STATEFUL_SETS

_LONGEST = 1_000_000
# Where to look at what was made, by kind; the first that the manifest has.
_LEADS_TO = {"Deployment": "deployments", "StatefulSet": "statefulsets", "Pod": "pods"}


def create_action(visit: Visit, sample: str = "") -> RowAction:
    """`sample`: the template to begin with."""
    href = visit.link("create", namespace=visit.namespace, sample=sample)
    return RowAction(visit.t("Create from template"), href, is_page=True)


def _rights(_: Visit) -> tuple[Right, ...]:
    """None: which ones are needed depends on the manifest, and the API server says so."""
    return ()


async def _ask(visit: Visit) -> Question:
    t = visit.t
    samples = {**visit.samples, **STARTERS}
    return Question(
        title=t("Create from template"),
        button=t("Create"),
        fields=(
            Field(
                "namespace",
                t("Namespace"),
                help=t("Of objects that name none."),
                value=visit.namespace or "default",
                is_required=True,
                longest=63,
            ),
            Field(
                "manifest",
                t("Template"),
                FieldKind.LINES,
                value=samples.get(visit.query.get("sample", ""), ""),
                is_required=True,
                longest=_LONGEST,
            ),
            Field("dry", "", FieldKind.HIDDEN),
        ),
        command="kubectl apply --server-side -f FILE",
    )


async def _do(visit: Visit, values: Mapping[str, str]) -> Done | Checked:
    t = visit.t
    try:
        plans = await planned(visit.kube, values["manifest"], values["namespace"])
        names = ", ".join(plan.shown for plan in plans)
        if values["dry"]:
            await try_out(visit.kube, plans)
            return Checked(t("The API server would accept it: {names}", names=names))
        await apply(visit.kube, plans)
    except BadManifest as bad:
        raise Invalid(errors_of(t, bad)) from bad
    return Done(_leads_to(visit, plans), t("Applied: {names}", names=names))


def _leads_to(visit: Visit, plans: list[Planned]) -> str:
    for plan in plans:
        if plan.resource in (DEPLOYMENTS, STATEFUL_SETS) or plan.resource.kind == "Pod":
            return visit.link(_LEADS_TO[plan.resource.kind], namespace=visit.namespace)
    return visit.link("overview")


ACTIONS = (Action("create", "create", _rights, _ask, _do, template="create.html"),)
