"""`authorizer`: what an expression asks about the permissions of whoever sends the request."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from localkube.apiserver.cel.errors import no_such_overload
from localkube.apiserver.cel.frame import Frame
from localkube.apiserver.cel.function import Function, method
from localkube.apiserver.cel.types import BOOL, STRING
from localkube.apiserver.cel.values import Opaque

AUTHORIZER_TYPE = "kubernetes.authorization.Authorizer"
RESOURCE_CHECK_TYPE = "kubernetes.authorization.ResourceCheck"
_CHECK_COST = 350_000  # kube-apiserver's: a check may go to another server there


class Verdict(Protocol):
    @property
    def allowed(self) -> bool: ...

    @property
    def reason(self) -> str: ...


# The service account as namespace and name, or None for the user of the request; the question by
# its fields (verb, group, resource, subresource, namespace, name, path).
Ask: TypeAlias = Callable[[tuple[str, str] | None, dict[str, str]], Verdict]


@dataclass(frozen=True, slots=True)
class Authorizer(Opaque):
    ask: Ask
    account: tuple[str, str] | None = None
    type_name = AUTHORIZER_TYPE


@dataclass(frozen=True, slots=True)
class Check(Opaque):
    """A question without its verb."""

    authorizer: Authorizer
    question: tuple[tuple[str, str], ...]
    type_name = RESOURCE_CHECK_TYPE

    def having(self, field: str, value: str) -> "Check":
        kept = tuple(pair for pair in self.question if pair[0] != field)
        return replace(self, question=(*kept, (field, value)))


@dataclass(frozen=True, slots=True)
class Decision(Opaque):
    verdict: Verdict
    type_name = "kubernetes.authorization.Decision"


def _starting(field: str) -> Callable[..., Check]:
    def run(frame: Frame, value: Any, text: Any) -> Check:
        if not isinstance(value, Authorizer) or not isinstance(text, str):
            raise no_such_overload()
        return Check(value, ((field, text),))

    return run


def _adding(field: str) -> Callable[..., Check]:
    def run(frame: Frame, value: Any, text: Any) -> Check:
        if not isinstance(value, Check) or not isinstance(text, str):
            raise no_such_overload()
        return value.having(field, text)

    return run


def _as_account(frame: Frame, value: Any, namespace: Any, name: Any) -> Authorizer:
    named = isinstance(namespace, str) and isinstance(name, str)
    if not isinstance(value, Authorizer) or not named:
        raise no_such_overload()
    return replace(value, account=(namespace, name))


def _check(frame: Frame, value: Any, verb: Any) -> Decision:
    if not isinstance(value, Check) or not isinstance(verb, str):
        raise no_such_overload()
    frame.charge(_CHECK_COST)
    question = dict(value.question) | {"verb": verb}
    return Decision(value.authorizer.ask(value.authorizer.account, question))


def _of_decision(part: Callable[[Verdict], Any]) -> Callable[..., Any]:
    def run(frame: Frame, value: Any) -> Any:
        if not isinstance(value, Decision):
            raise no_such_overload()
        return part(value.verdict)

    return run


AUTHORIZER_FUNCTIONS: dict[str, Function] = {
    "path": method(_starting("path"), RESOURCE_CHECK_TYPE, 2),
    "group": method(_starting("group"), RESOURCE_CHECK_TYPE, 2),
    "serviceAccount": method(_as_account, AUTHORIZER_TYPE, 3),
    "resource": method(_adding("resource"), RESOURCE_CHECK_TYPE, 2),
    "subresource": method(_adding("subresource"), RESOURCE_CHECK_TYPE, 2),
    "namespace": method(_adding("namespace"), RESOURCE_CHECK_TYPE, 2),
    "name": method(_adding("name"), RESOURCE_CHECK_TYPE, 2),
    "check": method(_check, "kubernetes.authorization.Decision", 2),
    "allowed": method(_of_decision(lambda verdict: verdict.allowed), BOOL, 1),
    "reason": method(_of_decision(lambda verdict: verdict.reason), STRING, 1),
    "errored": method(_of_decision(lambda _: False), BOOL, 1),
    "error": method(_of_decision(lambda _: ""), STRING, 1),
}
