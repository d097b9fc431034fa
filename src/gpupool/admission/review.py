"""Answers an AdmissionReview with an AdmissionReview. Pure."""

import base64
import copy
from collections.abc import Set
from dataclasses import dataclass

import jsonpatch
import orjson

from gpupool.admission.asked import gpu_containers, is_shared
from gpupool.admission.cards import ClusterCards
from gpupool.admission.environment import hide_unrequested, unrequested_complaints
from gpupool.admission.foreign.systems import System
from gpupool.admission.foreign.translate import RESOURCES
from gpupool.admission.forgery import forged
from gpupool.admission.hints import hints, of_pods, understood_words
from gpupool.admission.injection import inject
from gpupool.admission.mounts import mount_complaints
from gpupool.admission.refusal import put_into_our_words
from gpupool.admission.runtime_class import class_choice
from gpupool.contract.gpu_asks import gpu_asks
from gpupool.contract.names import (
    ENV_VISIBLE_DEVICES,
    LABEL_CGPU_NO_ISOLATION,
    SCHEDULER_NAME,
    VISIBLE_DEVICES_NONE,
)
from gpupool.core.pods import PodRequest
from kubeclient.objects import Obj
from kubeclient.placement import node_selector, required_nodes

API_VERSION = "admission.k8s.io/v1"


class BadReview(ValueError):
    """The body is not an AdmissionReview of a version that we understand."""


@dataclass(frozen=True, slots=True)
class Rules:
    schedulers: Set[str]  # users that may write allocations
    scheduler_name: str = SCHEDULER_NAME  # for GPU pods that name no other scheduler
    runtime_class: str = ""  # for GPU pods, while no node with cards is known


def review_pod(
    review: Obj, rules: Rules, cards: ClusterCards, systems: Set[System] = frozenset()
) -> Obj:
    """Checks and completes a pod that is being created. `systems`: those whose words we understand
    beside ours. Raises BadReview."""
    request = _request(review)
    # A copy: the functions below change the pod, and the patch is its difference to the original.
    pod = copy.deepcopy(request["object"])
    found, translation = put_into_our_words(pod, cards, systems)
    if found:
        return _refused(request, found)
    if not gpu_containers(pod):  # words that only looked like those of another system
        return _allowed(request)
    places = _places(pod)
    is_share = any(is_shared(container) for container in gpu_containers(pod))
    by_driver = is_share and places is not None and cards.driver_holds(places)
    inject(pod, scheduler_name=rules.scheduler_name, by_driver=by_driver)
    warnings = _set_runtime_class(pod, places, cards, rules)
    patch = jsonpatch.make_patch(request["object"], pod).patch
    if is_share:
        warnings += _warnings(places, cards)
    # The owner of other pods was told when it was created itself (`review_hints`).
    if translation.notes and not pod["metadata"].get("ownerReferences"):
        warnings.append(understood_words(translation))
    return _allowed(request, patch, warnings)


def review_allocation(review: Obj, rules: Rules) -> Obj:
    """Checks a write to a pod or Binding that has or had an allocation. Raises BadReview."""
    request = _request(review)
    # A match condition leaves these users out already. The check also holds for a registration that
    # was written with other rules.
    if (request.get("userInfo") or {}).get("username") in rules.schedulers:
        return _allowed(request)
    found = forged(request.get("oldObject"), request["object"])
    return _refused(request, found) if found else _allowed(request)


def review_paths(review: Obj) -> Obj:
    """Checks what a GPU pod mounts and sees, after all other webhooks have changed it, and when a
    container is added to a pod that runs. Raises BadReview."""
    request = _request(review)
    pod = request["object"]
    found = [*unrequested_complaints(pod), *mount_complaints(pod)]
    return _refused(request, found) if found else _allowed(request)


def review_visible(review: Obj) -> Obj:
    """Makes a pod that asks for no GPU see none. Raises BadReview."""
    request = _request(review)
    pod = copy.deepcopy(request["object"])
    if gpu_containers(pod) or not hide_unrequested(pod):
        return _allowed(request)
    patch = jsonpatch.make_patch(request["object"], pod).patch
    words = f"{ENV_VISIBLE_DEVICES} was set to {VISIBLE_DEVICES_NONE}, as the pod asks for no GPU"
    is_owned = bool(pod["metadata"].get("ownerReferences"))
    return _allowed(request, patch, [] if is_owned else [words])


def review_hints(
    review: Obj,
    cards: ClusterCards,
    systems: Set[System] = frozenset(),
    running: Set[System] = frozenset(),
) -> Obj:
    """Allows everything, with warnings: what the pods of a workload will be refused for, and names
    that are nearly ours or another system's.
    `running`: systems that run here, and understand their words themselves. Raises BadReview."""
    request = _request(review)
    obj = request["object"]
    theirs = {name for system in systems | running for name in RESOURCES.get(system, ())}
    warnings = [
        *of_pods(obj, cards, systems),
        *hints(obj, cards.resources | theirs),
    ]
    return _allowed(request, warnings=warnings)


def _request(review: Obj) -> Obj:
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict) or not isinstance(request.get("object"), dict):
        raise BadReview("the body is not an AdmissionReview with a request and its object")
    if review.get("apiVersion") != API_VERSION:
        raise BadReview(f"apiVersion {review.get('apiVersion')}; {API_VERSION} is understood")
    if not request.get("uid") or not isinstance(request["object"].get("metadata"), dict):
        raise BadReview("the request has no uid, or its object has no metadata")
    return request


def _places(pod: Obj) -> PodRequest | None:
    """Where a pod may run; None: its rules cannot be read."""
    try:
        return PodRequest(
            *("", "", ""),  # uid, namespace and name do not matter here
            resources={},
            node_selector=node_selector(pod["spec"]),
            node_terms=required_nodes(pod["spec"]),
            gpus=gpu_asks(pod).asks,
        )
    except (KeyError, ValueError):  # the API server's validation comes later and says what is wrong
        return None


def _set_runtime_class(
    pod: Obj, places: PodRequest | None, cards: ClusterCards, rules: Rules
) -> list[str]:
    """Sets the class that brings the cards, if the pod names none; returns warnings."""
    if pod["spec"].get("runtimeClassName") or places is None or not places.gpus:
        return []
    choice = class_choice(cards.places(places), rules.runtime_class)
    if choice.name:
        pod["spec"]["runtimeClassName"] = choice.name
    if not choice.left_out:
        return []
    nodes = f"{len(choice.left_out)} node(s) with GPUs ({choice.left_out[0]}, ...)"
    others = "another runtimeClassName" if choice.name else "a runtimeClassName"
    return [
        f"this pod {'got runtimeClassName ' + choice.name if choice.name else 'has none'}, and "
        f"{nodes} need {others}: it will not run there; a nodeSelector or a runtimeClassName of "
        "its own chooses"
    ]


def _warnings(places: PodRequest | None, cards: ClusterCards) -> list[str]:
    if places is None or not cards.leaves_open(places):
        return []
    return [
        "this pod may run with or without isolation of GPU memory, as the cluster has pools of "
        f'both kinds; choose one by nodeSelector {LABEL_CGPU_NO_ISOLATION}: "false" or "true"'
    ]


def _refused(request: Obj, found: list[str]) -> Obj:
    status = {"code": 422, "reason": "Invalid", "message": "; ".join(found)}
    return _answer({"uid": request["uid"], "allowed": False, "status": status})


def _allowed(
    request: Obj, patch: list[Obj] | None = None, warnings: list[str] | None = None
) -> Obj:
    response: Obj = {"uid": request["uid"], "allowed": True}
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(patch)).decode()
    if warnings:
        response["warnings"] = warnings
    return _answer(response)


def _answer(response: Obj) -> Obj:
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
