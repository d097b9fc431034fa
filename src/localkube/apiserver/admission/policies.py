"""ValidatingAdmissionPolicies: expressions that say which writes are refused, or warned about."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from kubeclient.objects import Obj
from kubeclient.turns import Turns
from localkube.apiserver.admission.admission_review import admission_request
from localkube.apiserver.admission.attributes import Attributes, PatientView
from localkube.apiserver.admission.compiling import Compiling
from localkube.apiserver.admission.matching import matched_kind
from localkube.apiserver.admission.policy_config import (
    Binding,
    Hook,
    Policy,
    hooks_of,
    length_of,
    policy_of,
)
from localkube.apiserver.admission.policy_judgement import (
    Denial,
    judged,
)
from localkube.apiserver.admission.policy_params import (
    Misconfigured,
    param_kind,
    params_of,
)
from localkube.apiserver.admission.versions import Convert, Versions
from localkube.apiserver.cel.authorizer import Authorizer, Check, Verdict
from localkube.apiserver.cel.expressions import BUDGET, EXHAUSTED, Exhausted
from localkube.apiserver.judges import Judges
from localkube.apiserver.kinds import Kind, Kinds
from localkube.apiserver.request import User
from localkube.apiserver.status import ApiError, forbidden

GROUP = "admissionregistration.k8s.io"
POLICIES = f"validatingadmissionpolicies.{GROUP}"
BINDINGS = f"validatingadmissionpolicybindings.{GROUP}"
# Nobody may lock everyone out of repairing a policy.
_EXEMPT = frozenset({POLICIES, BINDINGS})
_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_NAMESPACE_METADATA = (
    *("name", "generateName", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers"),
)

# Whether a user may do what the fields of a question say (verb, group, resource, ...).
Allowed: TypeAlias = Callable[[User | None, tuple[str, str] | None, dict[str, str]], Verdict]


class Policies:
    def __init__(
        self,
        cluster: PatientView,
        kinds: Kinds,
        convert: Convert,
        allowed: Allowed,
        judges: Judges,
    ) -> None:
        self._cluster = cluster
        self._kinds = kinds
        self._versions = Versions(convert)
        self._allowed = allowed
        self._judges = judges
        self._compiling = Compiling(judges.long_work, "admission policies")
        self._parsed: tuple[Sequence[Obj], Sequence[Obj], tuple[Hook, ...]] | None = None
        self._compiled: dict[str, tuple[Obj, Policy]] = {}  # by name, with what they were made of

    async def validate(self, attributes: Attributes) -> None:
        """Raises ApiError for the first denial, in the order of the policies' names."""
        hooks = await self._hooks(attributes)
        if not hooks:
            return
        refused: ApiError | None = None
        turns = Turns()
        for hook in hooks:
            await turns.next()
            kind = matched_kind(hook.criteria, attributes, self._cluster, self._kinds)
            if kind is None:
                continue
            policy = await self._policy(hook)
            # All are asked, also after a denial: their warnings are told in any case.
            for binding, denial in await self._denials(hook, policy, kind, attributes):
                refused = refused or _refused(attributes, policy, binding, denial)
        if refused is not None:
            raise refused

    async def _hooks(self, attributes: Attributes) -> tuple[Hook, ...]:
        bindings = await self._cluster.listed(BINDINGS)
        if not bindings or attributes.kind.resource in _EXEMPT:
            return ()
        policies = await self._cluster.listed(POLICIES)
        kept = self._parsed
        # The view returns the same lists until one of the objects changes.
        if kept is not None and kept[0] is policies and kept[1] is bindings:
            return kept[2]
        hooks = await hooks_of(policies, bindings)
        self._parsed = policies, bindings, hooks
        names = {hook.name for hook in hooks}
        self._compiled = {name: made for name, made in self._compiled.items() if name in names}
        return hooks

    async def _policy(self, hook: Hook) -> Policy:
        """Compiled when it is first needed, and again when it has been changed."""

        def known() -> Policy | None:
            kept = self._compiled.get(hook.name)
            return kept[1] if kept is not None and kept[0] is hook.source else None

        def make() -> Policy:
            return policy_of(hook.source)

        found = known()
        if found is None:
            found = await self._compiling.done(known, make, lambda: length_of(hook.source))
            self._compiled[hook.name] = hook.source, found
        return found

    async def _denials(
        self, hook: Hook, policy: Policy, kind: Kind, attributes: Attributes
    ) -> list[tuple[Binding | None, Denial]]:
        """Those that refuse the write; it is only warned about the others."""
        found: list[tuple[Binding | None, Denial]] = []
        turns = Turns()
        try:
            params_kind = param_kind(policy, self._kinds)
        except Misconfigured as error:
            text = f"failed to configure policy: {error}"
            return [] if policy.ignores_failure else [(None, Denial(text))]
        for binding in hook.bindings:
            if not self._is_bound(binding, attributes):
                continue
            params = params_of(
                binding, params_kind, attributes.namespace, self._cluster, self._versions
            )
            try:
                async for each in params:
                    await turns.next()
                    denials = await self._judged(policy, kind, attributes, each)
                    found += _acted_on(denials, policy, binding, attributes)
            except Misconfigured as error:
                if not policy.ignores_failure:
                    found.append((binding, Denial(f"failed to configure binding: {error}")))
        return found

    def _is_bound(self, binding: Binding, attributes: Attributes) -> bool:
        if binding.criteria is None:
            return True
        return matched_kind(binding.criteria, attributes, self._cluster, self._kinds) is not None

    async def _judged(
        self, policy: Policy, kind: Kind, attributes: Attributes, params: Obj | None
    ) -> list[Denial]:
        names = await self._names(policy, kind, attributes, params)
        namespace = self._namespace(attributes)

        def question(budget: int) -> list[Denial]:
            return judged(policy, names, namespace, budget)

        try:
            return await self._judges.answer(question, BUDGET)
        except Exhausted:
            return [] if policy.ignores_failure else [Denial(EXHAUSTED)]

    async def _names(
        self, policy: Policy, kind: Kind, attributes: Attributes, params: Obj | None
    ) -> Mapping[str, Any]:
        obj, old = await self._versions.of(attributes, kind)
        request = admission_request("", attributes, kind, None, None)
        del request["object"], request["oldObject"]
        names: dict[str, Any] = {"object": obj, "oldObject": old, "request": request}
        names["params"] = params
        if policy.asks_authorizer:
            authorizer = Authorizer(lambda who, what: self._allowed(attributes.user, who, what))
            names |= {
                "authorizer": authorizer,
                "authorizer.requestResource": _of_request(authorizer, attributes),
            }
        return names

    def _namespace(self, attributes: Attributes) -> Obj | None:
        if not attributes.namespace or attributes.kind.resource == "namespaces":
            return None
        found = self._cluster.get("namespaces", "", attributes.namespace)
        if found is None:
            return None
        known = found["metadata"]
        metadata = {key: known[key] for key in _NAMESPACE_METADATA if key in known}
        parts = {key: found[key] for key in ("spec", "status") if key in found}
        return {"metadata": metadata} | parts


def _of_request(authorizer: Authorizer, attributes: Attributes) -> Check:
    kind = attributes.kind
    question = {
        "group": kind.group,
        "resource": kind.plural,
        "subresource": attributes.subresource,
        "namespace": attributes.namespace,
        "name": attributes.name,
    }
    return Check(authorizer, tuple(question.items()))


def _acted_on(
    denials: list[Denial], policy: Policy, binding: Binding, attributes: Attributes
) -> list[tuple[Binding | None, Denial]]:
    found: list[tuple[Binding | None, Denial]] = []
    for denial in denials:
        if denial.by_annotation or "Deny" in binding.actions:
            found.append((binding, denial))
        elif "Warn" in binding.actions:
            attributes.warnings.append(
                f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding "
                f"'{binding.name}': {denial.message}"
            )
    return found


def _refused(
    attributes: Attributes, policy: Policy, binding: Binding | None, denial: Denial
) -> ApiError:
    by = f" with binding '{binding.name}'" if binding is not None else ""
    why = f"ValidatingAdmissionPolicy '{policy.name}'{by} denied request: {denial.message}"
    # By now a name has been drawn, if one had to be.
    drawn = ((attributes.obj or {}).get("metadata") or {}).get("name", "")
    error = forbidden(attributes.kind, drawn or attributes.name, why)
    reason = denial.reason or "Invalid"
    error.status |= {"reason": reason, "code": _CODES.get(reason, 422)}
    error.status["details"]["causes"] = [{"message": why}]
    return error
