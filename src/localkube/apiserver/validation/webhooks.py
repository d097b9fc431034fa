"""Webhook configurations, and how the server reaches a webhook."""

import re
from urllib.parse import urlsplit

from kubeclient.objects import Obj
from localkube.apiserver.patch.go_text import quoted
from localkube.apiserver.validation.domains import qualified_name
from localkube.apiserver.validation.errors import (
    Errors,
    duplicate,
    invalid,
    invalid_each,
    not_supported,
    required,
    too_many,
)
from localkube.apiserver.validation.formats import (
    dns_1035_label,
    dns_subdomain,
    label_key,
    port_number,
)
from localkube.apiserver.validation.metadata import object_meta
from localkube.apiserver.validation.selectors import label_selector

_REVIEW_VERSIONS = ("v1", "v1beta1")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_CHOICES = {"failurePolicy": ("Fail", "Ignore"), "matchPolicy": ("Equivalent", "Exact")}
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_CONDITIONS_MAX = 64
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_FORM = "; desired format: https://host[/path]"


def create(obj: Obj) -> Errors:
    errors: Errors = []
    object_meta(errors, obj["metadata"], dns_subdomain, namespaced=False)
    names: set[str] = set()
    for place, hook in enumerate(obj.get("webhooks", ())):
        path = f"webhooks[{place}]"
        _webhook(errors, hook, path)
        versions = hook.get("admissionReviewVersions", ())
        review_versions(errors, versions, f"{path}.admissionReviewVersions", _MUST_SPECIFY)
        if hook["name"] and hook["name"] in names:
            errors.append(duplicate(f"{path}.name", hook["name"]))
        names.add(hook["name"])
    return errors


def update(new: Obj, old: Obj) -> Errors:
    return create(new)


_MUST_SPECIFY = f"must specify one of {', '.join(_REVIEW_VERSIONS)}"


def review_versions(errors: Errors, versions: list[str], path: str, missing: str) -> None:
    """`missing`: what to say if there are none."""
    if not versions:
        errors.append(required(path, missing))
        return
    seen: set[str] = set()
    for place, version in enumerate(versions):
        if version in seen:
            errors.append(invalid(f"{path}[{place}]", version, "duplicate version"))
            continue
        seen.add(version)
        invalid_each(errors, f"{path}[{place}]", version, dns_1035_label(version))
    if not seen.intersection(_REVIEW_VERSIONS):
        what = f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"
        errors.append(invalid(path, versions, what))


def client_config(errors: Errors, config: Obj, path: str) -> None:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        errors.append(required(path, "exactly one of url or service is required"))
    elif url is not None:
        _url(errors, url, f"{path}.url")
    elif service is not None:
        _service(errors, service, f"{path}.service")


def _webhook(errors: Errors, hook: Obj, path: str) -> None:
    qualified_name(errors, hook["name"], f"{path}.name")
    for place, rule in enumerate(hook.get("rules", ())):
        rule_errors(errors, rule, f"{path}.rules[{place}]")
    for name, choices in _CHOICES.items():
        if hook[name] not in choices:
            errors.append(not_supported(f"{path}.{name}", hook[name], choices))
    effects = hook.get("sideEffects")
    if effects is None:
        what = f"must specify one of {', '.join(_SIDE_EFFECTS)}"
        errors.append(required(f"{path}.sideEffects", what))
    elif effects not in _SIDE_EFFECTS:
        errors.append(not_supported(f"{path}.sideEffects", effects, _SIDE_EFFECTS))
    if not 1 <= hook["timeoutSeconds"] <= 30:
        what = "the timeout value must be between 1 and 30 seconds"
        errors.append(invalid(f"{path}.timeoutSeconds", hook["timeoutSeconds"], what))
    for name in ("namespaceSelector", "objectSelector"):
        label_selector(errors, hook[name], f"{path}.{name}")
    policy = hook.get("reinvocationPolicy")
    if policy is not None and policy not in ("IfNeeded", "Never"):
        at = f"{path}.reinvocationPolicy"
        errors.append(not_supported(at, policy, ("IfNeeded", "Never")))
    client_config(errors, hook["clientConfig"], f"{path}.clientConfig")
    condition_errors(errors, hook.get("matchConditions", []), f"{path}.matchConditions")


def rule_errors(errors: Errors, rule: Obj, path: str) -> None:
    operations = rule.get("operations", [])
    _some(errors, operations, f"{path}.operations", "operations")
    for place, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            at = f"{path}.operations[{place}]"
            errors.append(not_supported(at, operation, _OPERATIONS))
    _some(errors, rule.get("apiGroups", []), f"{path}.apiGroups", "API groups")
    versions = rule.get("apiVersions", [])
    _some(errors, versions, f"{path}.apiVersions", "API versions")
    for place, version in enumerate(versions):
        if not version:
            errors.append(required(f"{path}.apiVersions[{place}]"))
    _resources(errors, rule.get("resources", []), f"{path}.resources")
    scopes = ("*", "Cluster", "Namespaced")
    if rule["scope"] not in scopes:
        errors.append(not_supported(f"{path}.scope", rule["scope"], scopes))


def _some(errors: Errors, values: list[str], path: str, called: str) -> None:
    if not values:
        errors.append(required(path))
    if len(values) > 1 and "*" in values:
        what = f"if '*' is present, must not specify other {called}"
        errors.append(invalid(path, values, what))


def _resources(errors: Errors, resources: list[str], path: str) -> None:
    if not resources:
        errors.append(required(path))
    _covered_twice(errors, resources, path)
    if len(resources) > 1 and "*/*" in resources:
        what = "if '*/*' is present, must not specify other resources"
        errors.append(invalid(path, resources, what))
    plain = [text for text in resources if text and "/" not in text]
    if "*" in plain and plain[-1] != "*":
        what = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(path, resources, what))


def _covered_twice(errors: Errors, resources: list[str], path: str) -> None:
    """Resources that an earlier wildcard in the same list covers already."""
    all_subresources: set[str] = set()
    of_all_resources: set[str] = set()
    for place, text in enumerate(resources):
        if not text:
            errors.append(required(f"{path}[{place}]"))
        name, slash, sub = text.partition("/")
        if not slash:
            continue
        if name in all_subresources:
            what = f"if '{name}/*' is present, must not specify {text}"
            errors.append(invalid(f"{path}[{place}]", text, what))
        if sub in of_all_resources:
            what = f"if '*/{sub}' is present, must not specify {text}"
            errors.append(invalid(f"{path}[{place}]", text, what))
        if sub == "*":
            all_subresources.add(name)
        if name == "*":
            of_all_resources.add(sub)


def condition_errors(errors: Errors, conditions: list[Obj], path: str) -> None:
    """Without compiling the expressions."""
    if len(conditions) > _CONDITIONS_MAX:
        errors.append(too_many(path, len(conditions), _CONDITIONS_MAX))
    names: set[str] = set()
    for place, condition in enumerate(conditions):
        at, name = f"{path}[{place}]", condition["name"]
        if not condition["expression"].strip():
            errors.append(required(f"{at}.expression"))
        if not name:
            errors.append(required(f"{at}.name"))
            continue
        invalid_each(errors, f"{at}.name", name, label_key(name))
        if name in names:
            errors.append(duplicate(f"{at}.name", name))
        names.add(name)


def _url(errors: Errors, url: str, path: str) -> None:
    try:
        if _CONTROL.search(url):  # urlsplit would leave them out
            raise ValueError(f"parse {quoted(url)}: net/url: invalid control character in URL")
        parts = urlsplit(url)
    except ValueError as error:
        errors.append(required(path, f"url must be a valid URL: {error}{_FORM}"))
        return
    if parts.scheme != "https":
        what = f"'https' is the only allowed URL scheme{_FORM}"
        errors.append(invalid(path, parts.scheme, what))
    user, at, host = parts.netloc.rpartition("@")
    if not host:
        errors.append(invalid(path, "", f"host must be specified{_FORM}"))
    if at:
        errors.append(invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        errors.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        what = "query parameters are not permitted in the URL"
        errors.append(invalid(path, parts.query, what))


def _service(errors: Errors, service: Obj, path: str) -> None:
    # Kubernetes hands over name and namespace the wrong way round, and clients see it so.
    if not service["namespace"]:
        errors.append(required(f"{path}.name"))
    if not service["name"]:
        errors.append(required(f"{path}.namespace"))
    complaints = port_number(service["port"])
    if complaints:
        what = f"port is not valid: {', '.join(complaints)}"
        errors.append(invalid(f"{path}.port", service["port"], what))
    _service_path(errors, service.get("path", ""), f"{path}.path")


def _service_path(errors: Errors, text: str, path: str) -> None:
    if text in ("", "/"):
        return
    if text == "//":
        errors.append(invalid(path, text, "segment[0] may not be empty"))
        return
    if not text.startswith("/"):
        errors.append(invalid(path, text, "must start with a '/'"))
    for place, step in enumerate(text[1:].removesuffix("/").split("/")):
        if not step:
            errors.append(invalid(path, text, f"segment[{place}] may not be empty"))
            continue
        for complaint in dns_subdomain(step):
            errors.append(invalid(path, text, f"segment[{place}]: {complaint}"))
