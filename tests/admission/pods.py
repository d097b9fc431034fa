"""Builds pods as the API server sends them to a webhook."""

import base64
from typing import Any

import orjson
from jsonpatch import JsonPatch

from gpupool.admission.cards import ClusterCards
from gpupool.admission.review import Rules, review_pod
from gpupool.core.nodes import NodeInfo
from kubeclient.objects import Obj

RULES = Rules(schedulers=frozenset({"system:kube-scheduler"}))
BOTH_POOLS = ClusterCards(
    largest_units=15,
    shared=tuple(
        NodeInfo(f"n-{text}", {"cgpu": "true", "cgpu.disable.isolation": text}, isolates=isolates)
        for text, isolates in (("true", False), ("false", True))
    ),
)


def container(name: str = "main", **limits: Any) -> Obj:
    """`gpu_mem=3` sets the limit, and the request that the API server derives from it."""
    amounts = {_RESOURCES[key]: str(value) for key, value in limits.items()}
    return {"name": name, "resources": {"limits": dict(amounts), "requests": dict(amounts)}}


_RESOURCES = {
    "gpu": "nvidia.com/gpu",
    "gpu_mem": "aliyun.com/gpu-mem",
    "percent": "aliyun.com/gpu-core.percentage",
    "alpha": "alpha.kubernetes.io/nvidia-gpu",
}


def pod(*containers: Obj, labels: Obj | None = None, **spec: Any) -> Obj:
    made: Obj = {
        "metadata": {"name": "p"},
        "spec": {"schedulerName": "default-scheduler", "containers": list(containers), **spec},
    }
    if labels:
        made["metadata"]["labels"] = labels
    return made


def review(obj: Obj, old: Obj | None = None, user: str = "someone") -> Obj:
    request = {"uid": "1", "object": obj, "oldObject": old, "userInfo": {"username": user}}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def answered(obj: Obj, cards: ClusterCards = BOTH_POOLS) -> Obj:
    response: Obj = review_pod(review(obj), RULES, cards)["response"]
    return response


def admitted(obj: Obj, cards: ClusterCards = BOTH_POOLS) -> Obj:
    """The pod after admission."""
    return applied(obj, answered(obj, cards))


def applied(obj: Obj, response: Obj) -> Obj:
    assert response["allowed"], response
    patch = orjson.loads(base64.b64decode(response["patch"]))
    changed: Obj = JsonPatch(patch).apply(obj)
    return changed


def refusal(obj: Obj, cards: ClusterCards = BOTH_POOLS) -> str:
    response = answered(obj, cards)
    assert not response["allowed"], response
    text: str = response["status"]["message"]
    return text


def environment(obj: Obj, i: int = 0) -> dict[str, str]:
    """The variables: their values, or the annotations that they refer to."""
    return {
        v["name"]: v["value"] if "value" in v else v["valueFrom"]["fieldRef"]["fieldPath"]
        for v in obj["spec"]["containers"][i]["env"]
    }
