"""How much of a device's capacity may be asked for when it is shared."""

from collections.abc import Sequence
from itertools import pairwise

from kubeclient import quantity
from kubeclient.objects import Obj
from kubeclient.quantity import Quantity
from localkube.apiserver.validation.devices import distinct
from localkube.apiserver.validation.errors import (
    Errors,
    forbidden_field,
    invalid,
    required,
    too_many,
)

_OPTIONS_MAX = 10


def request_policy(errors: Errors, policy: Obj, capacity: str, path: str) -> None:
    values, limits = policy.get("validValues", []), policy.get("validRange")
    if values and limits is not None:
        what = (
            "exactly one policy can be specified, cannot specify"
            ' "validValues" and "validRange" at the same time'
        )
        errors.append(forbidden_field(path, what))
        return
    name = "validValues" if values else "validRange"
    if not values and limits is None:
        return
    if "default" not in policy:
        errors.append(required(f"{path}.default", f"required when {name} is defined"))
        return
    default, most = quantity.parse(policy["default"]), quantity.parse(capacity)
    if limits is None:
        _values(errors, [quantity.parse(one) for one in values], default, most, f"{path}.{name}")
    else:
        _range(errors, limits, default, most, f"{path}.{name}")


def _values(
    errors: Errors, values: Sequence[Quantity], default: Quantity, most: Quantity, path: str
) -> None:
    for place, (one, following) in enumerate(pairwise(values), start=1):
        if one.nanos > following.nanos:
            what = "values must be sorted in ascending order"
            errors.append(invalid(f"{path}[{place}]", following.text, what))
    known = False
    if len(values) > _OPTIONS_MAX:
        errors.append(too_many(path, len(values), _OPTIONS_MAX))
    else:
        for place, one in enumerate(values):
            if one.nanos > most.nanos:
                what = f"option is larger than capacity value: {most.text}"
                errors.append(invalid(f"{path}[{place}]", one.text, what))
        distinct(errors, (str(quantity.value(one)) for one in values), path)
        known = any(one.nanos == default.nanos for one in values)
    if not known:
        what = "default value is not valid according to the requestPolicy"
        errors.append(invalid(path, default.text, what))


def _range(errors: Errors, limits: Obj, default: Quantity, capacity: Quantity, path: str) -> None:
    if "min" not in limits:
        errors.append(required(f"{path}.min", "required when validRange is defined"))
        return
    least = quantity.parse(limits["min"])
    most = quantity.parse(limits["max"]) if "max" in limits else None
    if least.nanos > capacity.nanos:
        what = f"min is larger than capacity value: {capacity.text}"
        errors.append(invalid(f"{path}.min", least.text, what))
    if default.nanos < least.nanos:
        what = f"default is less than min: {least.text}"
        errors.append(invalid(f"{path}.min", default.text, what))
    if most is not None:
        _most(errors, (least, default, most, capacity), f"{path}.max")
    if "step" in limits:
        step = quantity.parse(limits["step"])
        after = quantity.add(least, step)
        if after.nanos > capacity.nanos:
            what = f"one step {after.text} is larger than capacity value: {capacity.text}"
            errors.append(invalid(f"{path}.step", step.text, what))
        for value in (default, most):
            if value is not None:
                _in_steps(errors, value, least, step, f"{path}.step")


def _most(errors: Errors, values: tuple[Quantity, Quantity, Quantity, Quantity], path: str) -> None:
    least, default, most, capacity = values
    if least.nanos > most.nanos:
        errors.append(invalid(path, least.text, f"min is larger than max: {most.text}"))
    if most.nanos > capacity.nanos:
        what = f"max is larger than capacity value: {capacity.text}"
        errors.append(invalid(path, most.text, what))
    if default.nanos > most.nanos:
        errors.append(invalid(path, default.text, f"default is more than max: {most.text}"))


def _in_steps(errors: Errors, value: Quantity, least: Quantity, step: Quantity, path: str) -> None:
    # A step of nothing makes the real server divide by zero.
    width = quantity.value(step)
    if width == 0 or (quantity.value(value) - quantity.value(least)) % width != 0:
        what = f"value is not a multiple of a given step ({step.text}) from ({least.text})"
        errors.append(invalid(path, value.text, what))
