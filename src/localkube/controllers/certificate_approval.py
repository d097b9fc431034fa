"""Approves the requests of kubelets for a client certificate of their own.

Whoever asks must be allowed to: certificatesigningrequests/nodeclient, or, for the node that the
certificate is for, certificatesigningrequests/selfnodeclient. All else is for people to decide.
"""

from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import SIGNING_REQUESTS, SUBJECT_ACCESS_REVIEWS
from localkube.controllers.run import Context, Controller, Watch
from localkube.signing_requests import (
    KUBELET_CLIENT,
    BadRequest,
    decoded,
    kubelet_client,
    parse,
)

_SELF = ("selfnodeclient", "Auto approving self kubelet client certificate")
_OTHER = ("nodeclient", "Auto approving kubelet client certificate")


async def reconcile(key: Key, context: Context) -> float | None:
    request = context.of(SIGNING_REQUESTS).get(key[1])
    if request is None or not _is_waiting(request):
        return None
    for right, words in _recognized(request["spec"]):
        if await _may(context, request["spec"], right):
            condition = {
                "type": "Approved",
                "status": "True",
                "reason": "AutoApproved",
                "message": f"{words} after SubjectAccessReview.",
            }
            known = request.get("status") or {}
            status = {**known, "conditions": [*known.get("conditions", ()), condition]}
            approved = {**request, "status": status}
            await context.kube.update(SIGNING_REQUESTS, approved, "approval")
            return None
    return None


def _is_waiting(request: Obj) -> bool:
    status = request.get("status") or {}
    decided = {each["type"] for each in status.get("conditions", ())} & {"Approved", "Denied"}
    return (
        request["spec"]["signerName"] == KUBELET_CLIENT
        and not status.get("certificate")
        and not decided
    )


def _recognized(spec: Obj) -> list[tuple[str, str]]:
    """Which rights would do, with what is said then; none if it is not a kubelet's request."""
    try:
        request = parse(decoded(spec.get("request", "")))
    except BadRequest:  # the API server accepts none
        return []
    if kubelet_client(request, spec.get("usages", [])):
        return []
    return [_SELF, _OTHER] if spec.get("username") == request.common_name else [_OTHER]


async def _may(context: Context, spec: Obj, right: str) -> bool:
    asked = {
        "group": "certificates.k8s.io",
        "resource": "certificatesigningrequests",
        "verb": "create",
        "subresource": right,
        "version": "*",
    }
    who = {key: spec[key] for key in ("uid", "groups", "extra") if spec.get(key)}
    review = {"spec": {"user": spec.get("username", ""), **who, "resourceAttributes": asked}}
    answer = await context.kube.create(SUBJECT_ACCESS_REVIEWS, {"metadata": {}, **review})
    return bool(answer["status"]["allowed"])


CONTROLLER = Controller("csrapproving", (Watch(SIGNING_REQUESTS),), reconcile, workers=1)
