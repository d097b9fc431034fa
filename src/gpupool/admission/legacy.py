"""The alpha API for GPUs, rewritten to the names that Kubernetes and our nodes use today."""

from collections.abc import Set

import msgspec
import orjson

from gpupool.admission.asked import PodContainer, containers
from gpupool.contract.names import (
    ANNOTATION_AFFINITY_ALPHA,
    LABEL_NVIDIA_NAME,
    LABEL_NVIDIA_NAME_ALPHA,
    RESOURCE_GPU,
    RESOURCE_GPU_ALPHA,
)
from kubeclient.labels import as_label_value
from kubeclient.objects import Obj

_NAME_LABELS = frozenset({LABEL_NVIDIA_NAME, LABEL_NVIDIA_NAME_ALPHA})


def modernise(pod: Obj, labels: Set[str]) -> list[str]:
    """Changes the pod in place; returns complaints about what cannot be rewritten.

    `labels`: names of cards, as in the labels of the cluster's nodes.
    """
    complaints = [text for container in containers(pod) for text in _rename_resource(container)]
    complaints += _move_affinity(pod)
    _fit_card_names(pod, labels)
    return complaints


def _rename_resource(container: PodContainer) -> list[str]:
    for kind in ("limits", "requests"):
        amounts = container.amounts(kind)
        if RESOURCE_GPU_ALPHA not in amounts:
            continue
        if RESOURCE_GPU in amounts:
            field = f"{container.field}.resources.{kind}"
            return [
                f"{field}: wanted {RESOURCE_GPU} or its old name {RESOURCE_GPU_ALPHA}, found both"
            ]
        amounts[RESOURCE_GPU] = amounts.pop(RESOURCE_GPU_ALPHA)
    return []


def _move_affinity(pod: Obj) -> list[str]:
    annotations = pod["metadata"].get("annotations") or {}
    text = annotations.get(ANNOTATION_AFFINITY_ALPHA)
    if text is None:
        return []
    field = f"metadata.annotations[{ANNOTATION_AFFINITY_ALPHA}]"
    if pod["spec"].get("affinity"):
        return [f"{field}: wanted this annotation or spec.affinity, found both"]
    try:
        affinity = orjson.loads(text)
        msgspec.convert(affinity, dict[str, dict[str, object]])
    except (orjson.JSONDecodeError, msgspec.ValidationError) as error:
        return [f"{field}: wanted an affinity as JSON, found something else: {error}"]
    pod["spec"]["affinity"] = affinity
    del annotations[ANNOTATION_AFFINITY_ALPHA]
    return []


def _fit_card_names(pod: Obj, labels: Set[str]) -> None:
    """People write `Tesla P100`; the label of the nodes is `Tesla-P100-PCIE-16GB`."""
    affinity = pod["spec"].get("affinity") or {}
    if isinstance(affinity, dict):
        _fit_within(affinity.get("nodeAffinity"), labels)


def _fit_within(node: object, labels: Set[str]) -> None:
    """Rewrites requirements at any depth. Validation refuses those in wrong places later."""
    if isinstance(node, list):
        for item in node:
            _fit_within(item, labels)
    elif isinstance(node, dict):
        if node.get("key") in _NAME_LABELS and isinstance(node.get("values"), list):
            node["values"] = _fitting(node["values"], labels)
        for item in node.values():
            _fit_within(item, labels)


def _fitting(names: list[object], labels: Set[str]) -> list[str]:
    """The names as label values, and the nodes' labels that begin with one of them."""
    values = [as_label_value(str(name)) for name in names]
    exact = sorted(
        label for label in labels if any(label.startswith(f"{value}-") for value in values)
    )
    return list(dict.fromkeys([*values, *exact]))
