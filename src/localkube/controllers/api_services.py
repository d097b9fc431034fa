"""Registers each version of a group that custom kinds are served in as an APIService, and takes the
registration back when the last of them is gone. Those of the built-in groups are made at the start.
"""

from collections.abc import Iterable

from kubeclient.errors import AlreadyExists
from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import API_SERVICES, CRDS
from localkube.controllers.run import Context, Controller, Watch

MANAGED = "kube-aggregator.kubernetes.io/automanaged"
_ALWAYS = "true"
_SERVED = "served group versions"
# Behind the built-in groups.
_GROUP_PRIORITY, _VERSION_PRIORITY = 1000, 100


async def reconcile(key: Key, context: Context) -> float | None:
    name = key[1]
    version, _, group = name.partition(".")
    found = context.of(API_SERVICES).get(name)
    wanted = _spec(group, version) if context.of(CRDS).has(_SERVED, name) else None
    if found is None:
        if wanted is not None:
            metadata = {"name": name, "labels": {MANAGED: _ALWAYS}}
            try:
                await context.kube.create(API_SERVICES, {"metadata": metadata, "spec": wanted})
            except AlreadyExists:  # somebody else answers this group version
                return None
    elif (found["metadata"].get("labels") or {}).get(MANAGED) == _ALWAYS:
        if wanted is None:
            await context.delete(API_SERVICES, found)
        elif found["spec"] != wanted:
            await context.kube.update(API_SERVICES, {**found, "spec": wanted})
    return None


def _spec(group: str, version: str) -> Obj:
    return {
        "group": group,
        "version": version,
        "groupPriorityMinimum": _GROUP_PRIORITY,
        "versionPriority": _VERSION_PRIORITY,
    }


def _of_crd(crd: Obj, _: Context) -> Iterable[Key]:
    for version in crd["spec"]["versions"]:
        yield "", f"{version['name']}.{crd['spec']['group']}"


def _served(crd: Obj) -> Iterable[str]:
    """The names of the APIServices."""
    for version in crd["spec"]["versions"]:
        if version["served"]:
            yield f"{version['name']}.{crd['spec']['group']}"


def _add_indexes(context: Context) -> None:
    context.of(CRDS).add_index(_SERVED, _served)


CONTROLLER = Controller(
    "crd-registration",
    (Watch(API_SERVICES), Watch(CRDS, _of_crd)),
    reconcile,
    workers=1,
    add_indexes=_add_indexes,
)
