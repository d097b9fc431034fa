"""podFailurePolicy and successPolicy of Jobs."""

from collections.abc import Collection

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    duplicate,
    invalid,
    invalid_each,
    invalid_unshown,
    not_negative,
    not_supported,
    required,
    too_long,
    too_many,
)
from localkube.apiserver.validation.formats import label_key, size

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_RULES_MAX = 20
_EXIT_CODES_MAX = 255
_PATTERNS_MAX = 20
_INDEXES_MAX = 64 * 1024


def failure_policy(errors: Errors, spec: Obj, path: str) -> None:
    rules = spec["podFailurePolicy"].get("rules", ())
    if len(rules) > _RULES_MAX:
        errors.append(too_many(f"{path}.rules", len(rules), _RULES_MAX))
    inner = spec["template"]["spec"]
    containers = [*inner.get("containers", ()), *inner.get("initContainers", ())]
    names = {container["name"] for container in containers}
    for place, rule in enumerate(rules):
        _failure_rule(errors, rule, spec, names, f"{path}.rules[{place}]")


def success_policy(errors: Errors, spec: Obj, path: str) -> None:
    policy = spec["successPolicy"]
    if spec.get("completionMode", "NonIndexed") != "Indexed":
        errors.append(invalid(path, policy, "requires indexed completion mode"))
        return
    rules = policy.get("rules", ())
    if not rules:
        what = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(f"{path}.rules", what))
    if len(rules) > _RULES_MAX:
        errors.append(too_many(f"{path}.rules", len(rules), _RULES_MAX))
    if "completions" in spec:
        for place, rule in enumerate(rules):
            _success_rule(errors, rule, spec["completions"], f"{path}.rules[{place}]")


def replacement_policy(errors: Errors, spec: Obj, path: str) -> None:
    policy = spec.get("podReplacementPolicy")
    if policy is None:
        return
    choices = ("Failed",) if "podFailurePolicy" in spec else ("Failed", "TerminatingOrFailed")
    if policy not in choices:
        errors.append(not_supported(path, policy, choices))


def index_count(text: str, completions: int) -> tuple[int, str]:
    """How many indexes "1,3-5" means, and what is wrong with it."""
    total, last = 0, None
    for interval in text.split(",") if text else ():
        low, high, why = index_interval(interval, completions)
        if why:
            return 0, why
        if last is not None and last >= low:
            return 0, f"non-increasing order, previous: {last}, current: {low}"
        total, last = total + high - low + 1, high
    return total, ""


def index_interval(text: str, completions: int) -> tuple[int, int, str]:
    parts = text.split("-")
    if len(parts) > 2:
        why = (
            f'the fragment "{text}" violates the requirement that an index interval can have at'
            " most two parts separated by '-'"
        )
        return 0, 0, why
    numbers = []
    for part in parts:
        if not part.isascii() or not part.isdigit() or len(part) > 18:
            return 0, 0, f'cannot convert string to integer for index: "{part}"'
        if int(part) >= completions:
            return 0, 0, f'too large index: "{part}"'
        numbers.append(int(part))
    if len(numbers) == 2 and numbers[0] >= numbers[1]:
        return 0, 0, f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}"
    return numbers[0], numbers[-1], ""


def _valid_values(choices: tuple[str, ...]) -> str:
    listed = " ".join(f'"{choice}"' for choice in choices)
    return f"valid values: [{listed}]"


def _failure_rule(errors: Errors, rule: Obj, spec: Obj, names: Collection[str], path: str) -> None:
    action = rule["action"]
    if not action:
        errors.append(required(f"{path}.action", _valid_values(_ACTIONS)))
    elif action == "FailIndex" and "backoffLimitPerIndex" not in spec:
        what = "requires the backoffLimitPerIndex to be set"
        errors.append(invalid(f"{path}.action", action, what))
    elif action not in _ACTIONS:
        errors.append(not_supported(f"{path}.action", action, _ACTIONS))
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
    if codes is not None:
        _exit_codes(errors, codes, names, f"{path}.onExitCodes")
    if conditions:
        _conditions(errors, conditions, f"{path}.onPodConditions")
    if codes is not None and conditions:
        what = "specifying both OnExitCodes and OnPodConditions is not supported"
        errors.append(invalid_unshown(path, what))
    if codes is None and not conditions:
        what = "specifying one of OnExitCodes and OnPodConditions is required"
        errors.append(invalid_unshown(path, what))


def _exit_codes(errors: Errors, codes: Obj, names: Collection[str], path: str) -> None:
    operator, values = codes["operator"], codes.get("values", [])
    if not operator:
        errors.append(required(f"{path}.operator", _valid_values(_OPERATORS)))
    elif operator not in _OPERATORS:
        errors.append(not_supported(f"{path}.operator", operator, _OPERATORS))
    container = codes.get("containerName")
    if container is not None and container not in names:
        what = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", container, what))
    at = f"{path}.values"
    if not values:
        errors.append(invalid(at, None, "at least one value is required"))
    elif len(values) > _EXIT_CODES_MAX:
        errors.append(too_many(at, len(values), _EXIT_CODES_MAX))
    seen: set[int] = set()
    for place, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(invalid(f"{at}[{place}]", value, "must not be 0 for the In operator"))
        if value in seen:
            errors.append(duplicate(f"{at}[{place}]", value))
        seen.add(value)
    if values != sorted(values):
        errors.append(invalid(at, values, "must be ordered"))


def _conditions(errors: Errors, patterns: list[Obj], path: str) -> None:
    if len(patterns) > _PATTERNS_MAX:
        errors.append(too_many(path, len(patterns), _PATTERNS_MAX))
    for place, pattern in enumerate(patterns):
        kind, status = pattern["type"], pattern["status"]
        invalid_each(errors, f"{path}[{place}].type", kind, label_key(kind))
        if status not in _STATUSES:
            errors.append(not_supported(f"{path}[{place}].status", status, _STATUSES))


def _success_rule(errors: Errors, rule: Obj, completions: int, path: str) -> None:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if indexes is None and count is None:
        what = "at least one of succeededCount or succeededIndexes must be specified"
        errors.append(required(path, what))
    total = 0
    if indexes is not None:
        at = f"{path}.succeededIndexes"
        if size(indexes) > _INDEXES_MAX:
            errors.append(too_long(at, _INDEXES_MAX))
        total, why = index_count(indexes, completions)
        if why:
            errors.append(invalid(at, indexes, f"error parsing succeededIndexes: {why}"))
    if count is None:
        return
    at = f"{path}.succeededCount"
    not_negative(errors, count, at)
    if count > completions:
        what = f"must be less than or equal to {completions} (the number of specified completions)"
        errors.append(invalid(at, count, what))
    if indexes is not None and count > total:
        what = (
            f"must be less than or equal to {total} (the number of indexes in the specified"
            " succeededIndexes field)"
        )
        errors.append(invalid(at, count, what))
