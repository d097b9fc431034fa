"""The alpha API of GPUs, rewritten to what Kubernetes and our nodes speak today."""

import msgspec
import orjson

from gpupool.admission.asked import Place, places
from gpupool.contract.names import (
    ANNOTATION_AFFINITY_ALPHA,
    LABEL_NVIDIA_NAME,
    LABEL_NVIDIA_NAME_ALPHA,
    RESOURCE_GPU,
    RESOURCE_GPU_ALPHA,
)
from gpupool.contract.objects import Obj
from gpupool.core.labels import as_label_value

_NAME_LABELS = frozenset({LABEL_NVIDIA_NAME, LABEL_NVIDIA_NAME_ALPHA})


def modernise(pod: Obj) -> list[str]:
    """Changes the pod in place; what cannot be rewritten comes back as complaints."""
    complaints = [text for place in places(pod) for text in _rename_resource(place)]
    complaints += _move_affinity(pod)
    _fit_card_names(pod)
    return complaints


def _rename_resource(place: Place) -> list[str]:
    for kind in ("limits", "requests"):
        amounts = place.amounts(kind)
        if RESOURCE_GPU_ALPHA not in amounts:
            continue
        if RESOURCE_GPU in amounts:
            field = f"{place.field}.resources.{kind}"
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


def _fit_card_names(pod: Obj) -> None:
    """`Tesla K80` is a card's name but no label value; nodes carry `Tesla-K80`."""
    affinity = pod["spec"].get("affinity") or {}
    if isinstance(affinity, dict):
        _fit_within(affinity.get("nodeAffinity"))


def _fit_within(node: object) -> None:
    """Requirements wherever they stand: what stands where none may is left to validation."""
    if isinstance(node, list):
        for item in node:
            _fit_within(item)
    elif isinstance(node, dict):
        if node.get("key") in _NAME_LABELS and isinstance(node.get("values"), list):
            node["values"] = [as_label_value(str(value)) for value in node["values"]]
        for item in node.values():
            _fit_within(item)
