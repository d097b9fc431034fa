"""Create from template: a manifest in an editor, tried by the API server, and applied."""

import re
from collections import Counter
from collections.abc import Mapping

from gpupool.console.complaints import BadManifest, errors_of
from gpupool.console.manifests import Planned, apply, planned, try_out
from gpupool.console.own_templates import (
    delete_template,
    is_template_name,
    own_templates,
    save_template,
)
from gpupool.console.parts.action import Action, Checked, Done, Question
from gpupool.console.parts.form import Field, FieldKind, Invalid
from gpupool.console.parts.table import RowAction
from gpupool.console.rights import Right
from gpupool.console.starters import STARTERS
from gpupool.console.visit import Visit
from gpupool.contract.names import CONFIG_MAP_TEMPLATES
from kubeclient.resources import CONFIG_MAPS, DEPLOYMENTS, STATEFUL_SETS

_LONGEST = 1_000_000
_LONGEST_KEPT = 200_000  # a ConfigMap holds 1 MiB of them
_KIND = re.compile(r"^kind: *[\"']?([A-Za-z]+)", re.MULTILINE)
# Where to look at what was made, by kind; the first that the manifest has.
_LEADS_TO = {"Deployment": "deployments", "StatefulSet": "statefulsets", "Pod": "pods"}


def create_action(visit: Visit, sample: str = "") -> RowAction:
    """`sample`: the template to begin with."""
    href = visit.link("create", namespace=visit.namespace, sample=sample)
    return RowAction(visit.t("Create from template"), href, is_page=True)


def kinds_in(text: str) -> str:
    """What a manifest would make: "1 Deployment, 2 Service". `static/create.js` does the same."""
    counts = Counter(_KIND.findall(text))
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())


def _rights(_: Visit) -> tuple[Right, ...]:
    """None: which ones are needed depends on the manifest, and the API server says so."""
    return ()


def _namespace(visit: Visit) -> str:
    return visit.namespace or "default"


async def _ask(visit: Visit) -> Question:
    t, query = visit.t, visit.query
    own = await own_templates(visit.kube, _namespace(visit))
    text = (own or {}).get(query.get("own", ""), "")
    text = text or {**visit.samples, **STARTERS}.get(query.get("sample", ""), "")
    return Question(
        title=t("Create from template"),
        button=t("Create"),
        fields=(
            Field(
                "namespace",
                t("Namespace"),
                help=t("Of objects that name none."),
                value=_namespace(visit),
                is_required=True,
                longest=63,
            ),
            Field(
                "manifest",
                t("Template"),
                FieldKind.LINES,
                value=text,
                is_required=True,
                longest=_LONGEST,
            ),
            Field("dry", "", FieldKind.HIDDEN),
            Field("keep", t("Name of the template"), value=query.get("own", "")),
        ),
        command="kubectl apply --server-side -f FILE",
        more={"own": own, "starters": tuple(STARTERS), "kinds": kinds_in},
    )


async def _do(visit: Visit, values: Mapping[str, str]) -> Done | Checked:
    t = visit.t
    if values["dry"] == "keep":
        return await _keep(visit, values["keep"], values["manifest"])
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


async def _keep(visit: Visit, name: str, text: str) -> Done:
    t, namespace = visit.t, _namespace(visit)
    if not is_template_name(name):
        words = t("Wanted letters, digits, hyphens, dots: at most 63 of them.")
        raise Invalid({"keep": words})
    if len(text) > _LONGEST_KEPT:
        raise Invalid({"keep": "too long"})
    await save_template(visit.kube, namespace, name, text)
    href = visit.link("create", namespace=visit.namespace, own=name)
    return Done(
        href, t("Template {name} is kept in namespace {namespace}.", name=name, namespace=namespace)
    )


def _leads_to(visit: Visit, plans: list[Planned]) -> str:
    for plan in plans:
        if plan.resource in (DEPLOYMENTS, STATEFUL_SETS) or plan.resource.kind == "Pod":
            return visit.link(_LEADS_TO[plan.resource.kind], namespace=visit.namespace)
    return visit.link("overview")


# -- templates that visitors keep --------------------------------------------------------------


def _delete_rights(visit: Visit) -> tuple[Right, ...]:
    return (Right("patch", CONFIG_MAPS, _namespace(visit)),)


async def _ask_delete(visit: Visit) -> Question:
    t, name, namespace = visit.t, visit.names["template"], _namespace(visit)
    patch = f'{{"data":{{"{name}":null}}}}'
    where = f"--namespace {namespace} --type merge"
    return Question(
        title=t("Delete template {name}", name=name),
        sentence=t("What was made from it stays."),
        button=t("Delete template {name}", name=name),
        is_dangerous=True,
        command=f"kubectl patch configmap {CONFIG_MAP_TEMPLATES} {where} -p '{patch}'",
        cancel=visit.link("create", namespace=visit.namespace),
    )


async def _delete(visit: Visit, _: Mapping[str, str]) -> Done:
    t, name = visit.t, visit.names["template"]
    await delete_template(visit.kube, _namespace(visit), name)
    href = visit.link("create", namespace=visit.namespace)
    return Done(href, t("Template {name} is deleted.", name=name), is_gone=True)


ACTIONS = (
    Action("create", "create", _rights, _ask, _do, template="create.html"),
    Action("create/templates/{template}/delete", "create", _delete_rights, _ask_delete, _delete),
)
