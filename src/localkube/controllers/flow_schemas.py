"""Says in the status of a FlowSchema whether its priority level exists, and makes the mandatory
objects again that somebody has deleted."""

from collections.abc import Iterable

from kubeclient.errors import AlreadyExists
from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import FLOW_SCHEMAS, PRIORITY_LEVELS
from kubeclient.times import stamp
from localkube.controllers.run import Context, Controller, Watch
from localkube.flow_control import LEVELS, MANDATORY, SCHEMAS, object_of

_DANGLING = "Dangling"


async def reconcile(key: Key, context: Context) -> float | None:
    name = key[1]
    if name in MANDATORY:
        await _make_again(name, context)
    schema = context.of(FLOW_SCHEMAS).get(name)
    if schema is None:
        return None
    level = schema["spec"]["priorityLevelConfiguration"]["name"]
    wanted = _condition(level, is_there=context.of(PRIORITY_LEVELS).get(level) is not None)
    status = schema.get("status") or {}
    conditions = status.get("conditions", ())
    found = next((each for each in conditions if each.get("type") == _DANGLING), None)
    if found is not None and all(found.get(key) == value for key, value in wanted.items()):
        return None
    since = found.get("lastTransitionTime") if found else None
    if found is None or found.get("status") != wanted["status"] or not since:
        since = stamp(context.now().timestamp())
    others = [each for each in conditions if each.get("type") != _DANGLING]
    new = {**status, "conditions": [*others, {**wanted, "lastTransitionTime": since}]}
    await context.kube.update_status(FLOW_SCHEMAS, {**schema, "status": new})
    return None


def _condition(level: str, *, is_there: bool) -> Obj:
    what = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}"'
    end = "and it exists" if is_there else "but there is no such object"
    return {
        "type": _DANGLING,
        "status": "False" if is_there else "True",
        "reason": "Found" if is_there else "NotFound",
        "message": f"{what} {end}",
    }


async def _make_again(name: str, context: Context) -> None:
    for resource, specs in ((FLOW_SCHEMAS, SCHEMAS), (PRIORITY_LEVELS, LEVELS)):
        if context.of(resource).get(name) is None:
            try:
                await context.kube.create(resource, object_of(resource.kind, name, specs[name]))
            except AlreadyExists:  # the mirror has not seen it yet
                continue


def _of_level(level: Obj, context: Context) -> Iterable[Key]:
    """A level concerns the schemas that name it, and the one of its own name."""
    name = level["metadata"]["name"]
    yield "", name
    for schema in context.of(FLOW_SCHEMAS):
        if schema["spec"]["priorityLevelConfiguration"]["name"] == name:
            yield "", schema["metadata"]["name"]


CONTROLLER = Controller(
    "flow-schemas", (Watch(FLOW_SCHEMAS), Watch(PRIORITY_LEVELS, _of_level)), reconcile, workers=1
)
