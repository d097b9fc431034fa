"""Defaults of what extends the API: webhooks, admission policies and custom resources."""

from collections.abc import Iterable

from kubeclient.objects import Obj

_HTTPS = 443


def mutating_webhooks(value: Obj) -> None:
    for webhook in value.get("webhooks", ()):
        _webhook(webhook)
        webhook.setdefault("reinvocationPolicy", "Never")


def validating_webhooks(value: Obj) -> None:
    for webhook in value.get("webhooks", ()):
        _webhook(webhook)


def admission_policy(value: Obj) -> None:
    spec: Obj = value["spec"]
    spec.setdefault("failurePolicy", "Fail")
    if "matchConstraints" in spec:
        _match_resources(spec["matchConstraints"])


def admission_policy_binding(value: Obj) -> None:
    if "matchResources" in value["spec"]:
        _match_resources(value["spec"]["matchResources"])


def custom_resource_definition(value: Obj) -> None:
    spec, status = value["spec"], value["status"]
    names: Obj = spec["names"]
    if names["kind"]:
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", names["kind"] + "List")
    conversion = spec.setdefault("conversion", {"strategy": "None"})
    _service_port(conversion.get("webhook", {}).get("clientConfig", {}))
    if "storedVersions" not in status:
        stored = [version["name"] for version in spec.get("versions", ()) if version["storage"]]
        if stored:
            status["storedVersions"] = stored[:1]


def _webhook(value: Obj) -> None:
    value.setdefault("failurePolicy", "Fail")
    _match(value)
    value.setdefault("timeoutSeconds", 10)
    _service_port(value["clientConfig"])
    _scopes(value.get("rules", ()))


def _match_resources(value: Obj) -> None:
    _match(value)
    _scopes(value.get("resourceRules", ()))
    _scopes(value.get("excludeResourceRules", ()))


def _scopes(rules: Iterable[Obj]) -> None:
    for rule in rules:
        rule.setdefault("scope", "*")


def _match(value: Obj) -> None:
    value.setdefault("matchPolicy", "Equivalent")
    value.setdefault("namespaceSelector", {})
    value.setdefault("objectSelector", {})


def _service_port(client: Obj) -> None:
    if "service" in client:
        client["service"].setdefault("port", _HTTPS)
