"""Admission policies and their bindings as values. Expressions are compiled apart (`policy_of`):
that takes long, and most writes are none of a policy's business."""

from collections.abc import Sequence
from dataclasses import dataclass

from kubeclient.objects import Obj
from kubeclient.selectors import LabelSelector
from kubeclient.turns import Turns
from localkube.apiserver.admission.matching import Criteria, rules_of, selector_of
from localkube.apiserver.cel.admission import NULL, admission_program
from localkube.apiserver.cel.expressions import Expression, attempted
from localkube.apiserver.cel.types import BOOL, DYN, STRING, Type

# Where a policy has expressions.
_PARTS = ("matchConditions", "variables", "validations", "auditAnnotations")


@dataclass(frozen=True, slots=True)
class Validation:
    expression: Expression
    message_expression: Expression | None
    message: str
    reason: str


@dataclass(frozen=True, slots=True)
class Policy:
    name: str
    conditions: tuple[Expression, ...]
    variables: tuple[tuple[str, Expression], ...]
    validations: tuple[Validation, ...]
    annotations: tuple[tuple[str, Expression], ...]  # by key
    ignores_failure: bool
    param_kind: tuple[str, str] | None  # apiVersion and kind
    asks_authorizer: bool


@dataclass(frozen=True, slots=True)
class ParamRef:
    name: str
    namespace: str
    selector: LabelSelector | None
    denies_without: bool


@dataclass(frozen=True, slots=True)
class Binding:
    name: str
    criteria: Criteria | None  # None: all that the policy is about
    actions: tuple[str, ...]
    param_ref: ParamRef | None


@dataclass(frozen=True, slots=True)
class Hook:
    """A policy that is bound, and what it is about."""

    source: Obj
    name: str
    criteria: Criteria
    bindings: tuple[Binding, ...]


async def hooks_of(policies: Sequence[Obj], bindings: Sequence[Obj]) -> tuple[Hook, ...]:
    """Policies that have bindings, by name. A policy without one does nothing."""
    turns = Turns()
    bound: dict[str, list[Binding]] = {}
    for each in bindings:
        await turns.next()
        bound.setdefault(_spec(each).get("policyName", ""), []).append(_binding(each))
    found: list[Hook] = []
    for policy in policies:
        await turns.next()
        name = policy["metadata"]["name"]
        if name in bound:
            criteria = _criteria(_spec(policy).get("matchConstraints") or {})
            found.append(Hook(policy, name, criteria, tuple(bound[name])))
    return tuple(found)


def length_of(policy: Obj) -> int:
    """Of all its expressions, in characters."""
    rows = (row for part in _PARTS for row in _spec(policy).get(part) or ())
    return sum(len(text) for row in rows for text in row.values())


def _spec(thing: Obj) -> Obj:
    """Empty if it is nothing of the sort: one object must not be in the way of every write."""
    found = thing.get("spec")
    return found if isinstance(found, dict) else {}


def _criteria(resources: Obj) -> Criteria:
    return Criteria(
        rules=rules_of(resources.get("resourceRules")),
        excluded=rules_of(resources.get("excludeResourceRules")),
        namespace_selector=selector_of(resources.get("namespaceSelector")),
        object_selector=selector_of(resources.get("objectSelector")),
        equivalent=resources.get("matchPolicy", "Equivalent") == "Equivalent",
    )


def _binding(binding: Obj) -> Binding:
    spec = _spec(binding)
    resources, ref = spec.get("matchResources"), spec.get("paramRef")
    return Binding(
        name=binding["metadata"]["name"],
        criteria=None if resources is None else _criteria(resources),
        actions=tuple(spec.get("validationActions") or ()),
        param_ref=None if ref is None else _param_ref(ref),
    )


def _param_ref(ref: Obj) -> ParamRef:
    selector = ref.get("selector")
    return ParamRef(
        name=ref.get("name", ""),
        namespace=ref.get("namespace", ""),
        selector=None if selector is None else selector_of(selector),
        denies_without=ref.get("parameterNotFoundAction") == "Deny",
    )


def policy_of(policy: Obj) -> Policy:
    """Compiled: about two milliseconds for a thousand characters."""
    spec = _spec(policy)
    kind = spec.get("paramKind")
    params = kind is not None
    types: dict[str, Type] = {}
    variables: list[tuple[str, Expression]] = []
    for row in spec.get("variables") or ():
        expression = _compiled(row["expression"], (), params, types)
        variables.append((row["name"], expression))
        types[row["name"]] = expression.program.type if expression.program else DYN
    rows = spec.get("validations") or ()
    return Policy(
        name=policy["metadata"]["name"],
        conditions=tuple(
            _compiled(row["expression"], (BOOL,), params)
            for row in spec.get("matchConditions") or ()
        ),
        variables=tuple(variables),
        validations=tuple(_validation(row, params, types) for row in rows),
        annotations=tuple(
            (row["key"], _compiled(row["valueExpression"], (STRING, NULL), params, types))
            for row in spec.get("auditAnnotations") or ()
        ),
        ignores_failure=spec.get("failurePolicy") == "Ignore",
        param_kind=(kind.get("apiVersion", ""), kind.get("kind", "")) if kind else None,
        asks_authorizer=any("authorizer" in str(spec.get(part)) for part in _PARTS),
    )


def _validation(row: Obj, params: bool, types: dict[str, Type]) -> Validation:
    text = row.get("messageExpression")
    return Validation(
        expression=_compiled(row["expression"], (BOOL,), params, types),
        message_expression=_compiled(text, (STRING,), params, types) if text else None,
        message=(row.get("message") or "").strip(),
        reason=row.get("reason") or "Invalid",
    )


def _compiled(
    text: str, wanted: tuple[str, ...], params: bool, types: dict[str, Type] | None = None
) -> Expression:
    return attempted(
        text,
        lambda: admission_program(text, wanted, params=params, authorizer=True, variables=types),
    )
