"""What the form of a new workload means as objects. Pure."""

import shlex
from collections.abc import Mapping

from gpupool.console.parts.form import Invalid
from gpupool.console.parts.lines import tags_of
from gpupool.console.parts.port_lines import ports_of
from gpupool.console.words import Translate
from gpupool.console.yaml_view import yaml_text
from gpupool.contract.names import LABEL_POOL, RESOURCE_GPU, RESOURCE_GPU_MEM
from kubeclient.objects import Obj
from kubeclient.resources import DEPLOYMENTS, JOBS, SERVICES, STATEFUL_SETS, Resource

KINDS: Mapping[str, Resource] = {each.kind: each for each in (DEPLOYMENTS, STATEFUL_SETS, JOBS)}
NONE, SHARE, WHOLE = "none", "share", "whole"  # of cards


def objects_of_form(t: Translate, values: Mapping[str, str]) -> list[Obj]:
    """A workload, and a Service if one is wanted. Raises Invalid."""
    ports = ports_of(t, "ports", values["ports"])
    if any(not isinstance(port["targetPort"], int) for port in ports):
        raise Invalid({"ports": t("Name the ports of the container by numbers.")})
    if values["service"] and not ports:
        raise Invalid({"ports": t("A service needs a port.")})
    workload = _workload(values, _pod_spec(t, values, ports))
    return [workload, _service(values, ports)] if values["service"] else [workload]


def yaml_of_objects(objects: list[Obj]) -> str:
    return "---\n".join(map(yaml_text, objects))


def _pod_spec(t: Translate, values: Mapping[str, str], ports: list[Obj]) -> Obj:
    container: Obj = {"name": "main", "image": values["image"]}
    try:
        command = shlex.split(values["command"])
    except ValueError as error:
        words = t("It cannot be split into words: {why}", why=error)
        raise Invalid({"command": words}) from error
    if command:
        container["command"] = command
    env = tags_of(t, "env", values["env"])
    if env:
        container["env"] = [{"name": name, "value": value} for name, value in env.items()]
    if ports:
        opened = dict.fromkeys((port["targetPort"], port["protocol"]) for port in ports)
        container["ports"] = [{"containerPort": port, "protocol": how} for port, how in opened]
    if limits := _limits(values):
        container["resources"] = {"limits": limits}
    where = {"nodeSelector": {LABEL_POOL: values["pool"]}} if values["pool"] else {}
    return {**where, "containers": [container]}


def _limits(values: Mapping[str, str]) -> dict[str, int]:
    if values["gpu"] == SHARE:
        return {RESOURCE_GPU_MEM: int(values["units"] or 1)}
    return {RESOURCE_GPU: int(values["cards"] or 1)} if values["gpu"] == WHOLE else {}


def _workload(values: Mapping[str, str], pod: Obj) -> Obj:
    resource, labels = KINDS[values["kind"]], {"app": values["name"]}
    count = int(values["replicas"])
    template: Obj = {"metadata": {"labels": labels}, "spec": pod}
    spec: Obj = {"replicas": count, "selector": {"matchLabels": labels}, "template": template}
    if resource is STATEFUL_SETS:
        spec = {"serviceName": values["name"], **spec}
    if resource is JOBS:
        template["spec"] = {"restartPolicy": "Never", **pod}
        spec = {"parallelism": count, "completions": count, "template": template}
    return _object(resource, values, {"labels": labels}, spec)


def _service(values: Mapping[str, str], ports: list[Obj]) -> Obj:
    selector = {"app": values["name"]}
    spec = {"type": values["service"], "selector": selector, "ports": ports}
    return _object(SERVICES, values, {}, spec)


def _object(resource: Resource, values: Mapping[str, str], metadata: Obj, spec: Obj) -> Obj:
    named = {"name": values["name"], "namespace": values["namespace"], **metadata}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": named,
        "spec": spec,
    }
