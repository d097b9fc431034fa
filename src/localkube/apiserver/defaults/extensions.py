"""Defaults of what extends the API: webhooks and custom resources."""

from kubeclient.objects import Obj

_HTTPS = 443


def mutating_webhooks(value: Obj) -> None:
    for webhook in value.get("webhooks", ()):
        _webhook(webhook)
        webhook.setdefault("reinvocationPolicy", "Never")


def validating_webhooks(value: Obj) -> None:
    for webhook in value.get("webhooks", ()):
        _webhook(webhook)


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
    for rule in value.get("rules", ()):
        rule.setdefault("scope", "*")


def _match(value: Obj) -> None:
    value.setdefault("matchPolicy", "Equivalent")
    value.setdefault("namespaceSelector", {})
    value.setdefault("objectSelector", {})


def _service_port(client: Obj) -> None:
    if "service" in client:
        client["service"].setdefault("port", _HTTPS)
