"""ValidatingAdmissionPolicies and their bindings, expressions included."""

import re
from collections.abc import Iterable

from kubeclient.objects import Obj
from localkube.apiserver.cel.admission import NULL, WrongType, admission_program
from localkube.apiserver.cel.errors import CompileError
from localkube.apiserver.cel.program import Program
from localkube.apiserver.cel.types import BOOL, DYN, STRING, Type
from localkube.apiserver.validation.conditions import conditions as status_conditions
from localkube.apiserver.validation.errors import (
    Errors,
    duplicate,
    forbidden_field,
    invalid,
    invalid_each,
    not_supported,
    required,
)
from localkube.apiserver.validation.formats import (
    dns_1035_label,
    dns_subdomain,
    label_key,
    path_segment,
)
from localkube.apiserver.validation.metadata import object_meta
from localkube.apiserver.validation.selectors import label_selector
from localkube.apiserver.validation.webhooks import condition_errors, rule_errors

_FAILURE_POLICIES = ("Fail", "Ignore")
_MATCH_POLICIES = ("Equivalent", "Exact")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS = ("Audit", "Deny", "Warn")
_ANNOTATIONS_MAX = 20
_ANNOTATION_LENGTH = 5 * 1024
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_KEYWORDS = frozenset(
    {
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for"),
        *("function", "if", "import", "let", "loop", "package", "namespace", "return", "var"),
        *("void", "while"),
    }
)
_SOMETHING = "validations or auditAnnotations must contain at least one item"
_BOTH = (
    "must not contain both Deny and Warn (repeating the same validation failure information in "
    "the API response and headers serves no purpose)"
)


def create_policy(obj: Obj) -> Errors:
    errors: Errors = []
    object_meta(errors, obj["metadata"], dns_subdomain, namespaced=False)
    spec = obj["spec"]
    if spec["failurePolicy"] not in _FAILURE_POLICIES:
        at = "spec.failurePolicy"
        errors.append(not_supported(at, spec["failurePolicy"], _FAILURE_POLICIES))
    if "paramKind" in spec:
        _param_kind(errors, spec["paramKind"], "spec.paramKind")
    if "matchConstraints" not in spec:
        errors.append(required("spec.matchConstraints"))
    else:
        _match_resources(errors, spec["matchConstraints"], "spec.matchConstraints")
        if not spec["matchConstraints"].get("resourceRules"):
            errors.append(required("spec.matchConstraints.resourceRules"))
    condition_errors(errors, spec.get("matchConditions", []), "spec.matchConditions")
    _PolicyExpressions(errors, "paramKind" in spec).check(obj)
    return errors


def update_policy(new: Obj, old: Obj) -> Errors:
    return create_policy(new)


def policy_status(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    status = new.get("status") or {}
    warnings = (status.get("typeChecking") or {}).get("expressionWarnings", ())
    for place, warning in enumerate(warnings):
        at = f"status.typeChecking.expressionWarnings[{place}]"
        if not warning.get("warning"):
            errors.append(required(f"{at}.warning"))
        if not warning.get("fieldRef", "").strip():
            errors.append(required(f"{at}.fieldRef"))
    status_conditions(errors, status.get("conditions", []), "status.conditions")
    return errors


def create_binding(obj: Obj) -> Errors:
    errors: Errors = []
    object_meta(errors, obj["metadata"], dns_subdomain, namespaced=False)
    spec = obj["spec"]
    name = spec.get("policyName", "")
    if not name:
        errors.append(required("spec.policyName"))
    else:
        invalid_each(errors, "spec.policyName", name, dns_subdomain(name))
    if "paramRef" in spec:
        _param_ref(errors, spec["paramRef"], "spec.paramRef")
    if "matchResources" in spec:
        _match_resources(errors, spec["matchResources"], "spec.matchResources")
    _actions(errors, spec.get("validationActions", []), "spec.validationActions")
    return errors


def update_binding(new: Obj, old: Obj) -> Errors:
    return create_binding(new)


class _PolicyExpressions:
    """Expressions of one policy, in order: a variable is there for all that follow it."""

    def __init__(self, errors: Errors, params: bool) -> None:
        self._errors = errors
        self._params = params
        self._variables: dict[str, Type] | None = None

    def check(self, obj: Obj) -> None:
        spec = obj["spec"]
        for place, condition in enumerate(spec.get("matchConditions", ())):
            at = f"spec.matchConditions[{place}].expression"
            self._compiled(condition["expression"].strip(), at, (BOOL,))
        for place, variable in enumerate(spec.get("variables", ())):
            self._variable(variable, f"spec.variables[{place}]")
        validations = spec.get("validations", ())
        annotations = spec.get("auditAnnotations", ())
        if not validations and not annotations:
            self._errors += [
                required("spec.validations", _SOMETHING),
                required("spec.auditAnnotations", _SOMETHING),
            ]
        for place, validation in enumerate(validations):
            self._validation(validation, f"spec.validations[{place}]")
        self._annotations(annotations, obj["metadata"].get("name", ""))

    def _compiled(
        self, text: str, at: str, wanted: tuple[str, ...] = (), *, authorizer: bool = True
    ) -> Program | None:
        if not text.strip():
            return None
        try:
            return admission_program(
                text,
                wanted,
                params=self._params,
                authorizer=authorizer,
                variables=self._variables,
            )
        except CompileError as error:
            self._errors.append(invalid(at, text, f"compilation failed: {error}"))
        except WrongType as error:
            self._errors.append(invalid(at, text, str(error)))
        return None

    def _variable(self, variable: Obj, path: str) -> None:
        name, text = variable["name"], variable["expression"]
        if not name.strip():
            self._errors.append(required(f"{path}.name", "name is not specified"))
        elif not _IDENTIFIER.fullmatch(name) or name in _KEYWORDS:
            what = "must be a valid CEL identifier"
            self._errors.append(invalid(f"{path}.name", name, what))
        if not text.strip():
            self._errors.append(required(f"{path}.expression", "expression is not specified"))
        if self._variables is None:
            self._variables = {}
        program = self._compiled(text, f"{path}.expression")
        self._variables = {**self._variables, name: program.type if program else DYN}

    def _validation(self, validation: Obj, path: str) -> None:
        errors, text = self._errors, validation["expression"]
        if not text.strip():
            errors.append(required(f"{path}.expression", "expression is not specified"))
        self._compiled(text, f"{path}.expression", (BOOL,))
        shown = validation.get("messageExpression", "")
        if shown and not shown.strip():
            at = f"{path}.messageExpression"
            errors.append(invalid(at, shown, "must be non-empty if specified"))
        self._compiled(shown, f"{path}.messageExpression", (STRING,), authorizer=False)
        message = validation.get("message", "")
        if message and not message.strip():
            errors.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
        elif re.search(r"[\r\n]", message.strip()):
            errors.append(invalid(f"{path}.message", message, "must not contain line breaks"))
        reason = validation.get("reason")
        if reason is not None and reason not in _REASONS:
            errors.append(not_supported(f"{path}.reason", reason, _REASONS))

    def _annotations(self, annotations: Iterable[Obj], name: str) -> None:
        errors, rows = self._errors, list(annotations)
        if len(rows) > _ANNOTATIONS_MAX:
            what = f"must not have more than {_ANNOTATIONS_MAX} auditAnnotations"
            errors.append(invalid("spec.auditAnnotations", rows, what))
        keys: set[str] = set()
        for place, row in enumerate(rows):
            path = f"spec.auditAnnotations[{place}]"
            self._annotation(row, path, name)
            if row["key"] in keys:
                errors.append(duplicate(f"{path}.key", row["key"]))
            keys.add(row["key"])

    def _annotation(self, row: Obj, path: str, name: str) -> None:
        errors, key, text = self._errors, row["key"], row["valueExpression"]
        if name:
            full = f"{name}/{key}"
            invalid_each(errors, f"{path}.key", full, label_key(full))
        else:
            errors.append(invalid(f"{path}.key", key, "requires metadata.name be non-empty"))
        at = f"{path}.valueExpression"
        if not text.strip():
            errors.append(required(at, "valueExpression is not specified"))
        elif len(text.strip().encode()) > _ANNOTATION_LENGTH:
            what = f"must not exceed {_ANNOTATION_LENGTH} bytes in length"
            errors.append(required(at, what))
        else:
            self._compiled(text, at, (STRING, NULL))


def _param_kind(errors: Errors, kind: Obj, path: str) -> None:
    api_version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    at = f"{path}.apiVersion"
    group, _, version = api_version.rpartition("/")
    if not api_version:
        errors.append(required(at))
    elif api_version.count("/") > 1:
        what = f"unexpected GroupVersion string: {api_version}"
        errors.append(invalid(at, api_version, what))
    else:
        if group and (complaints := dns_subdomain(group)):
            errors.append(invalid(at, group, ",".join(complaints)))
        if not version:
            errors.append(invalid(at, api_version, "version must be specified"))
        elif complaints := dns_1035_label(version):
            errors.append(invalid(at, version, ",".join(complaints)))
    if not name:
        errors.append(required(f"{path}.kind"))
    elif complaints := dns_1035_label(name.lower()):
        what = f"may have mixed case, but should otherwise match: {','.join(complaints)}"
        errors.append(invalid(f"{path}.kind", name, what))


def _match_resources(errors: Errors, resources: Obj, path: str) -> None:
    if resources["matchPolicy"] not in _MATCH_POLICIES:
        at = f"{path}.matchPolicy"
        errors.append(not_supported(at, resources["matchPolicy"], _MATCH_POLICIES))
    for name in ("namespaceSelector", "objectSelector"):
        label_selector(errors, resources[name], f"{path}.{name}")
    for name in ("resourceRules", "excludeResourceRules"):
        for place, rule in enumerate(resources.get(name, ())):
            at = f"{path}.{name}[{place}]"
            _names(errors, rule.get("resourceNames", ()), f"{at}.resourceNames")
            rule_errors(errors, rule, at)


def _names(errors: Errors, names: Iterable[str], path: str) -> None:
    seen: set[str] = set()
    for place, name in enumerate(names):
        invalid_each(errors, f"{path}[{place}]", name, path_segment(name))
        if name in seen:
            errors.append(duplicate(f"{path}[{place}]", name))
        seen.add(name)


def _param_ref(errors: Errors, ref: Obj, path: str) -> None:
    name, selector = ref.get("name", ""), ref.get("selector")
    exclusive = "name and selector are mutually exclusive"
    if name:
        invalid_each(errors, f"{path}.name", name, path_segment(name))
        if selector is not None:
            errors.append(forbidden_field(f"{path}.name", exclusive))
    if selector is not None:
        label_selector(errors, selector, f"{path}.selector")
        if name:
            errors.append(forbidden_field(f"{path}.selector", exclusive))
    if not name and selector is None:
        errors.append(required(path, "one of name or selector must be specified"))
    action = ref.get("parameterNotFoundAction")
    if not action:
        errors.append(required(f"{path}.parameterNotFoundAction"))
    elif action not in ("Deny", "Allow"):
        at = f"{path}.parameterNotFoundAction"
        errors.append(not_supported(at, action, ("Deny", "Allow")))


def _actions(errors: Errors, actions: list[str], path: str) -> None:
    seen: set[str] = set()
    for place, action in enumerate(actions):
        if action not in _ACTIONS:
            errors.append(not_supported(f"{path}[{place}]", action, _ACTIONS))
        if action in seen:
            errors.append(duplicate(f"{path}[{place}]", action))
        seen.add(action)
    if {"Deny", "Warn"} <= seen:
        errors.append(invalid(path, actions, _BOTH))
    if not seen:
        errors.append(required(path, "at least one validation action is required"))
