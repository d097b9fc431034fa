"""metrics.k8s.io: what nodes and pods use now, asked of the kubelets. `kubectl top` reads it."""

import datetime

import orjson

from kubeclient.objects import Obj
from kubeclient.selectors import SelectorError, parse_label_selector
from localkube.apiserver import status
from localkube.apiserver.api import Api
from localkube.apiserver.request import Answer, Request
from localkube.apiserver.routing import Target

_WINDOW = "15s"


async def node_metrics(api: Api, request: Request, target: Target) -> Answer:
    usage = api.nodes.node_usage()
    found = {
        ("", record.name): (record.labels, {"usage": usage[record.name]})
        for record in api.store.records("nodes")
        if record.name in usage
    }
    return _answer(api, request, target, "NodeMetrics", found)


async def pod_metrics(api: Api, request: Request, target: Target) -> Answer:
    usage = api.nodes.pod_usage()
    found = {
        (record.namespace, record.name): (
            record.labels,
            {"containers": usage[record.namespace, record.name]},
        )
        for record in api.store.records("pods", target.namespace or None)
        if (record.namespace, record.name) in usage
    }
    return _answer(api, request, target, "PodMetrics", found)


def _answer(
    api: Api,
    request: Request,
    target: Target,
    kind: str,
    found: dict[tuple[str, str], tuple[dict[str, str], Obj]],
) -> Answer:
    items = {key: _metrics(api, kind, key, *entry) for key, entry in found.items()}
    if target.name:
        item = items.get((target.namespace, target.name))
        if item is None:
            raise status.not_found(target.kind, target.name)
        return Answer(200, orjson.dumps(item))
    try:
        selector = parse_label_selector(request.text("labelSelector"))
    except SelectorError as error:
        raise status.bad_request(str(error)) from error
    chosen = [items[key] for key, (labels, _) in found.items() if selector.matches(labels)]
    body = {
        "kind": f"{kind}List",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {"resourceVersion": str(api.store.published_rv)},
        "items": chosen,
    }
    return Answer(200, orjson.dumps(body))


def _metrics(api: Api, kind: str, key: tuple[str, str], labels: dict[str, str], usage: Obj) -> Obj:
    namespace, name = key
    now = datetime.datetime.fromtimestamp(api.clock(), datetime.UTC)
    metadata: Obj = {"name": name, "creationTimestamp": api.stamp()}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    return {
        "kind": kind,
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": metadata,
        "timestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "window": _WINDOW,
        **usage,
    }
