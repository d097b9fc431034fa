"""The objects that a binding names as the parameters of its policy."""

from collections.abc import AsyncIterator

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import PatientView
from localkube.apiserver.admission.policy_config import Binding, ParamRef, Policy
from localkube.apiserver.admission.versions import Versions
from localkube.apiserver.kinds import Kind, Kinds


class Misconfigured(Exception):
    """A policy or a binding cannot be used as it is. `binding`: it is the binding's fault."""

    def __init__(self, why: str, *, binding: bool = True) -> None:
        super().__init__(why)
        self.binding = binding


def param_kind(policy: Policy, kinds: Kinds) -> Kind | None:
    """Raises Misconfigured if there is no such kind; None if the policy has no parameters."""
    if policy.param_kind is None:
        return None
    api_version, name = policy.param_kind
    group, _, version = api_version.rpartition("/")
    kind = kinds.by_kind(group, version, name)
    if kind is None or kind.virtual:
        text = f"'{group}/{version}, Kind={name}'"
        raise Misconfigured(
            f"failed to find resource referenced by paramKind: {text}", binding=False
        )
    return kind


async def params_of(
    binding: Binding, kind: Kind | None, namespace: str, cluster: PatientView, versions: Versions
) -> AsyncIterator[Obj | None]:
    """The policy is judged once with each. Raises Misconfigured."""
    ref = binding.param_ref
    if kind is None or ref is None:
        yield None
        return
    is_found = False
    async for each in _found(ref, kind, _place(ref, kind, namespace), cluster):
        is_found = True
        yield await versions.stored(each, kind)
    if not is_found and ref.denies_without:
        action = "with `Deny` parameterNotFoundAction"
        raise Misconfigured(f"no params found for policy binding {action}")


def _place(ref: ParamRef, kind: Kind, namespace: str) -> str:
    if not kind.namespaced:
        if ref.namespace:
            raise Misconfigured(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
            )
        return ""
    if not ref.namespace and not namespace:
        raise Misconfigured(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
    return ref.namespace or namespace


async def _found(ref: ParamRef, kind: Kind, place: str, cluster: PatientView) -> AsyncIterator[Obj]:
    if ref.name:
        found = cluster.get(kind.resource, place, ref.name)
        if found is not None:
            yield found
        return
    if ref.selector is None:
        raise Misconfigured("one of name or selector must be provided")
    async for each in cluster.selected(kind.resource, place or None, ref.selector.matches):
        yield each
