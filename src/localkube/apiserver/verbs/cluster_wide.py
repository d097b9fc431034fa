"""Fields and refusals that depend on the rest of the cluster, not on the object alone.

A service gets an address that no other service has, a CRD gets its names if no other CRD has them,
and nobody may hand out rights that they do not have themselves.
"""

from collections.abc import Callable
from functools import partial

from kubeclient.objects import Obj
from localkube.apiserver import custom, status
from localkube.apiserver.admission.policies import GROUP, POLICIES
from localkube.apiserver.api import Api
from localkube.apiserver.request import Request, User
from localkube.apiserver.security.access import Access
from localkube.apiserver.security.escalation import RightsFromThread, escalation_refusal
from localkube.apiserver.security.policy_params import (
    param_kind_errors,
    param_ref_errors,
)
from localkube.apiserver.security.rbac import GROUP as RBAC
from localkube.apiserver.security.rbac import MASTERS
from localkube.apiserver.security.signers import signer_refusal
from localkube.apiserver.status import FieldError

CRD_CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


def complete_cluster_wide(api: Api, new: Obj, old: Obj | None, resource: str) -> list[FieldError]:
    """Completes `new` in place; `old` is None for a create. Called a second time, it only checks
    that what `new` has is not somebody else's by now."""
    step = _STEPS.get(resource)
    return step(api, new, old) if step is not None else []


async def refuse_escalation(api: Api, request: Request, new: Obj, old: Obj | None) -> None:
    """Nobody hands out rights that they do not have."""
    if request.user is None or request.access is None:
        return
    if request.access.group == RBAC and MASTERS not in request.user.groups:
        # Aside: each right of the role is compared with each rule that the user holds.
        rights = RightsFromThread(api.authorizer, api.long_work.on_loop)
        judge = partial(escalation_refusal, rights, request.user, request.access, new, old)
        refused = await api.long_work.done(request.user.name, judge)
        if refused is not None:
            raise refused
    if request.access.group == GROUP:
        _refuse_params(api, request.user, request.access, new, old)


def refuse_signers(api: Api, request: Request, new: Obj, old: Obj) -> None:
    """Nor approves or signs for a signer that is not theirs to speak for."""
    if request.user is None or request.access is None:
        return
    refused = signer_refusal(api.authorizer, request.user, request.access, new, old)
    if refused is not None:
        raise refused


def _refuse_params(api: Api, user: User, access: Access, new: Obj, old: Obj | None) -> None:
    """Nor reads by a policy what they may not read."""
    if access.subresource:
        return
    errors: list[FieldError] = []
    if access.resource == "validatingadmissionpolicies":
        errors = param_kind_errors(api.authorizer, api.kinds, user, new, old)
    elif access.resource == "validatingadmissionpolicybindings":
        found = api.store.get(POLICIES, "", new["spec"].get("policyName", ""))
        policy = None if found is None else found.obj()
        errors = param_ref_errors(api.authorizer, api.kinds, user, new, old, policy)
    if errors:
        raise status.invalid(new["kind"], GROUP, new["metadata"].get("name", ""), errors)


def _service(api: Api, new: Obj, old: Obj | None) -> list[FieldError]:
    if old is None:
        new["status"] = {"loadBalancer": {}}
    return api.addresses.complete(new, old)


def _crd(api: Api, new: Obj, old: Obj | None) -> list[FieldError]:
    """Names are taken when the CRD is stored, so it is established from the first moment."""
    errors = _taken_names(api, new)
    if errors:
        return errors
    if old is None:
        new["status"] = custom.accepted(new, api.stamp())
        finalizers = new["metadata"].setdefault("finalizers", [])
        if CRD_CLEANUP not in finalizers:
            finalizers.append(CRD_CLEANUP)
    elif old["spec"] != new["spec"]:
        fresh = custom.accepted(new, api.stamp())
        known = new.setdefault("status", {})
        known["acceptedNames"] = fresh["acceptedNames"]
        stored = known.setdefault("storedVersions", [])
        stored += [version for version in fresh["storedVersions"] if version not in stored]
    return []


def _taken_names(api: Api, crd: Obj) -> list[FieldError]:
    """An error if another CRD, or Kubernetes itself, has this kind in this group already."""
    group, names = crd["spec"]["group"], crd["spec"]["names"]
    own = crd["metadata"]["name"]
    for kind in api.kinds:
        same_names = kind.kind == names["kind"] and f"{kind.plural}.{kind.group}" != own
        if kind.group == group and (same_names or not kind.custom):
            text = f"{kind.kind} of group {group} is defined already"
            return [status.invalid_value("spec.names.kind", names["kind"], text)]
    return []


_STEPS: dict[str, Callable[[Api, Obj, Obj | None], list[FieldError]]] = {
    "services": _service,
    custom.CRDS: _crd,
}
