"""Create by a form: a workload with GPUs, and what fits where while the form is filled in.

Beside it stands the same as YAML, which can be changed too (`form_join.py`).
"""

import asyncio
from collections.abc import Mapping

from gpupool.console.complaints import BadManifest, complaints_of, errors_of
from gpupool.console.fitting import Fit, fit_of, tried_pod
from gpupool.console.form_join import LONGEST, join
from gpupool.console.manifests import planned
from gpupool.console.pages.create import kinds_in
from gpupool.console.parts.action import Action, Checked, Done, Question
from gpupool.console.parts.form import Field, FieldKind, Invalid
from gpupool.console.rights import Denied, Right
from gpupool.console.said import said
from gpupool.console.visit import Visit
from gpupool.console.words import Translate
from gpupool.console.workload_manifest import KINDS, NONE, SHARE, WHOLE
from kubeclient.errors import KubeError, Refused
from kubeclient.objects import Obj

_MOST_REPLICAS = 10_000
_MOST_CARDS = 64
_UNITS = 32  # GiB of the largest card, if nobody knows
_DRY = {"dryRun": "All"}
_STRICT = {"fieldValidation": "Strict"}


def _rights(_: Visit) -> tuple[Right, ...]:
    """None: they depend on what is chosen, and the API server says so."""
    return ()


async def _ask(visit: Visit) -> Question:
    t = visit.t
    return Question(
        title=t("Create by a form"),
        button=t("Create"),
        fields=(
            *await _fields(visit),
            Field("step", "", FieldKind.HIDDEN),
            Field("manifest", "YAML", FieldKind.LINES, longest=LONGEST),
            Field("seen", "", FieldKind.LINES, longest=LONGEST),
        ),
        command="kubectl apply -f FILE",
        cancel=visit.link("create", namespace=visit.namespace),
    )


async def _fields(visit: Visit) -> tuple[Field, ...]:
    return (*_program_fields(visit), *await _card_fields(visit), *_network_fields(visit.t))


def _program_fields(visit: Visit) -> tuple[Field, ...]:
    t, namespace = visit.t, visit.namespace or "default"
    kinds = tuple((kind, kind) for kind in KINDS)
    return (
        Field("name", t("Name"), value="my-app", is_required=True, longest=52),
        Field("kind", t("Kind"), FieldKind.CHOICE, value="Deployment", choices=kinds),
        Field("namespace", t("Namespace"), value=namespace, is_required=True, longest=63),
        Field("image", t("Image"), value="busybox", is_required=True, longest=512),
        Field(
            "command",
            t("Command"),
            help=t("Leave it empty to run the command of the image."),
            # What the image runs by itself ends at once, and a Deployment would start it for ever.
            value="sleep infinity",
            longest=8_000,
        ),
        Field(
            "replicas",
            t("Pods wanted"),
            FieldKind.NUMBER,
            value="1",
            is_required=True,
            least=0,
            most=_MOST_REPLICAS,
        ),
    )


async def _card_fields(visit: Visit) -> tuple[Field, ...]:
    t = visit.t
    units, pools = await _cards(visit)
    gpus = ((SHARE, t("a share of a card")), (WHOLE, t("whole cards")), (NONE, t("no card")))
    offered = (("", t("any")), *((each, each) for each in pools))
    first = str(min(3, units))
    return (
        Field("gpu", t("Cards"), FieldKind.CHOICE, value=SHARE, choices=gpus),
        Field("units", t("Share, in GiB"), FieldKind.RANGE, value=first, least=1, most=units),
        Field("cards", t("Whole cards"), FieldKind.NUMBER, value="1", least=1, most=_MOST_CARDS),
        Field("pool", t("Node pool"), FieldKind.CHOICE, choices=offered),
    )


def _network_fields(t: Translate) -> tuple[Field, ...]:
    ports = t("One per line: 80; 80:8888 if pods listen on 8888; 53/UDP; 80 http to name it http")
    pairs = t("One per line: key=value")
    kinds = ((kind, kind) for kind in ("LoadBalancer", "NodePort", "ClusterIP"))
    return (
        Field("ports", t("Ports"), FieldKind.LINES, ports, longest=8_000, rows=2),
        Field("env", t("Environment"), FieldKind.LINES, pairs, longest=64_000, rows=2),
        Field("service", t("Service"), FieldKind.CHOICE, choices=(("", t("none")), *kinds)),
    )


async def _cards(visit: Visit) -> tuple[int, list[str]]:
    """GiB of the largest card, and the pools with cards."""
    try:
        nodes = (await visit.gpus()).nodes
    except Denied:
        return _UNITS, []
    units = [view.card.units for node in nodes for view in node.cards]
    return max(1, *units) if units else _UNITS, sorted({node.pool for node in nodes if node.pool})


async def _do(visit: Visit, values: Mapping[str, str]) -> Done | Checked:
    t, fields = visit.t, await _fields(visit)
    # In a thread: a long text takes a while, and other visitors do not wait for it.
    found = await asyncio.to_thread(join, t, fields, values)
    if values["step"] == "preview":
        words = await _fit_words(visit, found.manifest.workload)
        would_be = {"made": kinds_in(found.text), "kept": found.kept}
        shown = {**found.values, "manifest": found.text, "seen": found.text, "step": ""}
        return Checked(words, would_be, shown)
    named = found.values
    try:
        await _create(visit, found.text, named["namespace"])
    except BadManifest as bad:
        raise Invalid(errors_of(t, bad)) from bad
    page = KINDS[named["kind"]].plural
    return Done(
        visit.link(page, named["namespace"], named["name"]),
        t("{name} is created.", name=named["name"]),
    )


async def _create(visit: Visit, text: str, namespace: str) -> None:
    """Raises BadManifest, KubeError."""
    plans = await planned(visit.kube, text, namespace)
    for query in (_DRY, {}):  # all are tried first, so that a mistake leaves nothing half made
        for plan in plans:
            try:
                await visit.kube.create(plan.resource, plan.obj, query={**_STRICT, **query})
            except Refused as refused:
                if refused.code == 401:
                    raise
                raise BadManifest(*complaints_of(plan.shown, plan.document, refused)) from refused


async def _fit_words(visit: Visit, workload: Obj) -> str:
    t, template = visit.t, workload["spec"]["template"]
    try:
        pod = await tried_pod(visit.kube, template, workload["metadata"].get("namespace", ""))
        fit = fit_of(await visit.model(), pod)
    except Denied:
        return t("To see where it fits, you need the right to see all nodes and pods.")
    except Refused as refused:
        if refused.code == 401:
            raise
        return t("The API server refuses such a pod: {why}", why=refused)
    except KubeError as error:
        return str(error)
    return _said(visit, fit)


def _said(visit: Visit, fit: Fit) -> str:
    t = visit.t
    if not fit.fits:
        return t("Fits on no node right now. {why}", why=said(t, fit.why))
    words = t("Fits on {fits} of {all} nodes right now.", fits=fit.fits, all=fit.nodes)
    cards = ", ".join(map(str, fit.cards))
    if cards:
        return f"{words} " + t(
            "One would go to {node}, card {cards}.", node=fit.named[0], cards=cards
        )
    return f"{words} " + t("One would go to {node}.", node=fit.named[0])


ACTIONS = (Action("create/form", "create", _rights, _ask, _do, template="create_form.html"),)
