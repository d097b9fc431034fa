"""Create a service for a workload, and change one: type, pods behind it, ports."""

from collections.abc import Mapping

from gpupool.console.parts.action import Action, Done, Question
from gpupool.console.parts.form import Field, FieldKind, Invalid
from gpupool.console.parts.kinds import Doing
from gpupool.console.parts.lines import labels_of, lines_of
from gpupool.console.parts.port_lines import port_lines, ports_of
from gpupool.console.parts.table import RowAction
from gpupool.console.rights import Denied, Right
from gpupool.console.visit import Visit
from gpupool.console.words import Translate, word
from kubeclient.objects import Obj
from kubeclient.resources import DAEMON_SETS, DEPLOYMENTS, SERVICES, STATEFUL_SETS

_TYPES = (
    ("LoadBalancer", word("LoadBalancer: reached from outside of the cluster")),
    ("NodePort", word("NodePort: reached on a port of every node")),
    ("ClusterIP", word("ClusterIP: reached inside of the cluster")),
)
_WITH_SELECTORS = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS)
_MOST_OFFERED = 500


async def create_service(visit: Visit) -> tuple[RowAction, ...]:
    href = visit.link("create", "service", namespace=visit.namespace)
    lacks = await visit.lacks(*create_rights(visit))
    return (RowAction(visit.t("Create service"), href, lacks),)


def create_rights(visit: Visit) -> tuple[Right, ...]:
    return (Right("create", SERVICES, visit.namespace or "default"),)


# -- create ------------------------------------------------------------------------------------


async def _ask_create(visit: Visit) -> Question:
    t = visit.t
    offered = await _workloads(visit)
    return Question(
        title=t("Create service"),
        button=t("Create service"),
        fields=(
            Field("name", t("Name"), is_required=True, longest=63),
            _type_field(t, "LoadBalancer"),
            Field(
                "workload",
                t("Pods of"),
                FieldKind.CHOICE,
                value=visit.query.get("workload", ""),
                choices=(("", t("by the labels below")), *((key, key) for key in offered)),
            ),
            Field(
                "namespace",
                t("Namespace"),
                help=t("If you chose a workload, it is that of the workload."),
                value=visit.namespace or "default",
                longest=63,
            ),
            _selector_field(t, ""),
            _ports_field(t, "80"),
        ),
        command="kubectl expose deployment NAME --type=LoadBalancer --port=80 --target-port=8888",
    )


def _type_field(t: Translate, value: str) -> Field:
    choices = tuple((kind, t(words)) for kind, words in _TYPES)
    if value not in dict(choices):  # ExternalName: nothing else of the form fits it
        choices = (*choices, (value, value))
    return Field("type", t("Type"), FieldKind.CHOICE, value=value, choices=choices)


def _selector_field(t: Translate, value: str) -> Field:
    words = t("One per line: key=value")
    return Field(
        "selector", t("Labels of the pods"), FieldKind.LINES, words, value, longest=64_000, rows=2
    )


def _ports_field(t: Translate, value: str) -> Field:
    words = t("One per line: 80; 80:8888 if pods listen on 8888; 53/UDP; 80 http to name it http")
    return Field(
        "ports", t("Ports"), FieldKind.LINES, words, value, is_required=True, longest=8_000, rows=3
    )


async def _workloads(visit: Visit) -> dict[str, tuple[str, dict[str, str]]]:
    """Those that the visitor may see: namespace and labels of their pods, by their name."""
    found: dict[str, tuple[str, dict[str, str]]] = {}
    for resource in _WITH_SELECTORS:
        try:
            rows = await visit.rows(resource, _selected)
        except Denied:
            continue
        for namespace, name, labels in rows:
            found[f"{resource.kind} {namespace}/{name}"] = (namespace, labels)
    return dict(sorted(found.items())[:_MOST_OFFERED])


def _selected(workload: Obj) -> tuple[str, str, dict[str, str]]:
    metadata = workload["metadata"]
    selector = (workload.get("spec") or {}).get("selector") or {}
    return metadata["namespace"], metadata["name"], dict(selector.get("matchLabels") or {})


async def _create(visit: Visit, values: Mapping[str, str]) -> Done:
    t, name = visit.t, values["name"]
    namespace = values["namespace"] or "default"
    selector = labels_of(t, "selector", values["selector"])
    if values["workload"]:
        namespace, labels = (await _workloads(visit))[values["workload"]]
        selector = {**labels, **selector}
    if not selector:
        raise Invalid({"workload": t("Choose a workload, or name labels of pods.")})
    spec = {
        "type": values["type"],
        "selector": selector,
        "ports": ports_of(t, "ports", values["ports"]),
    }
    service = {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
    await visit.kube.create(SERVICES, service)
    words = t("Service {name} is created.", name=name)
    return Done(visit.link(SERVICES.plural, namespace, name), words)


# -- change ------------------------------------------------------------------------------------


async def _ask_change(visit: Visit) -> Question:
    t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
    spec = (await visit.kube.get(SERVICES, name, namespace)).get("spec") or {}
    return Question(
        title=t("Change service {name}", name=name),
        button=t("Save"),
        fields=(
            _type_field(t, str(spec.get("type") or "ClusterIP")),
            _selector_field(t, lines_of(spec.get("selector") or {})),
            _ports_field(t, port_lines(spec.get("ports") or [])),
        ),
        command=f"kubectl edit service {name} --namespace {namespace}",
    )


async def _change(visit: Visit, values: Mapping[str, str]) -> Done:
    t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
    service = await visit.kube.get(SERVICES, name, namespace)
    spec = service.get("spec") or {}
    before = spec.get("ports") or []
    if values["type"] == "ClusterIP":  # which has no ports of nodes to keep
        before = [{k: v for k, v in port.items() if k != "nodePort"} for port in before]
    changed = {
        "type": values["type"],
        "selector": labels_of(t, "selector", values["selector"]),
        "ports": ports_of(t, "ports", values["ports"], before),
    }
    # With the version that was read: whoever was overtaken is told by the API server.
    await visit.kube.update(SERVICES, {**service, "spec": {**spec, **changed}})
    return Done(
        visit.link(SERVICES.plural, namespace, name), t("Service {name} is changed.", name=name)
    )


def _change_rights(namespace: str) -> tuple[Right, ...]:
    return tuple(Right(verb, SERVICES, namespace) for verb in ("get", "update"))


CHANGE = Doing("change", word("Change"), _change_rights, _ask_change, _change)
ACTIONS = (Action("create/service", "services", create_rights, _ask_create, _create),)
