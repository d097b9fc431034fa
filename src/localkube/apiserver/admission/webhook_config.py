"""Webhook configurations as values: parsed once per change, not once per write."""

import base64
import binascii
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kubeclient.objects import Obj
from localkube.apiserver.admission.matching import Criteria, rules_of, selector_of

_DEFAULT_TIMEOUT_S = 10
_DRY_RUN_SAFE = frozenset({"None", "NoneOnDryRun"})


@dataclass(frozen=True, slots=True)
class Service:
    namespace: str
    name: str
    path: str
    port: int


@dataclass(frozen=True, slots=True)
class Callee:
    """Where a webhook is, whom its certificate must be from, and how long it may take."""

    url: str  # "" when it is a service
    service: Service | None
    ca_pem: str
    timeout_s: int


@dataclass(frozen=True, slots=True)
class Condition:
    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class Webhook:
    configuration: str
    name: str
    criteria: Criteria
    conditions: tuple[Condition, ...]
    callee: Callee
    ignores_failure: bool
    dry_run_safe: bool
    reinvoked: bool
    review_versions: tuple[str, ...]


def webhooks_of(configurations: Sequence[Obj]) -> tuple[Webhook, ...]:
    """In the order of calling: by configuration, then as listed."""
    return tuple(hook for configuration in configurations for hook in _hooks(configuration))


def _hooks(configuration: Obj) -> Iterator[Webhook]:
    for hook in configuration.get("webhooks") or ():
        timeout_s = hook.get("timeoutSeconds") or _DEFAULT_TIMEOUT_S
        yield Webhook(
            configuration=configuration["metadata"]["name"],
            name=hook.get("name", ""),
            criteria=Criteria(
                rules=rules_of(hook.get("rules")),
                namespace_selector=selector_of(hook.get("namespaceSelector")),
                object_selector=selector_of(hook.get("objectSelector")),
                equivalent=hook.get("matchPolicy", "Equivalent") == "Equivalent",
            ),
            conditions=tuple(
                Condition(each.get("name", ""), each.get("expression", ""))
                for each in hook.get("matchConditions") or ()
            ),
            callee=callee_of(hook.get("clientConfig") or {}, timeout_s),
            ignores_failure=hook.get("failurePolicy") == "Ignore",
            dry_run_safe=hook.get("sideEffects") in _DRY_RUN_SAFE,
            reinvoked=hook.get("reinvocationPolicy") == "IfNeeded",
            review_versions=tuple(hook.get("admissionReviewVersions") or ()),
        )


def callee_of(client_config: Obj, timeout_s: int) -> Callee:
    return Callee(
        url=client_config.get("url") or "",
        service=_service(client_config.get("service")),
        ca_pem=_decoded(client_config.get("caBundle") or ""),
        timeout_s=timeout_s,
    )


def _service(service: Obj | None) -> Service | None:
    if not service:
        return None
    return Service(
        service.get("namespace", ""),
        service.get("name", ""),
        service.get("path") or "/",
        service.get("port") or 443,
    )


def _decoded(text: str) -> str:
    try:
        # Blank means none, as in Kubernetes.
        return base64.b64decode(text).decode("ascii", errors="replace").strip()
    except binascii.Error:
        return ""
