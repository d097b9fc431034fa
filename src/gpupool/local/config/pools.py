"""Turns the fields of one node pool into a PoolSpec. Pools of a cluster file and NodePool objects
have the same fields, and both are read here."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from gpupool.contract import names
from gpupool.contract.yaml_document import Problem
from gpupool.local.config import file_format
from gpupool.local.config.catalogue import Catalogue
from gpupool.local.config.schema_problems import did_you_mean
from gpupool.local.config.spec import (
    Autoscaling,
    NodeNaming,
    PoolSpec,
    Role,
    Taint,
)
from kubeclient import names as kube_names

# Labels that gpupool sets on every node; a pool may not set them.
_SET_BY_US = frozenset(
    (
        kube_names.LABEL_ARCH,
        kube_names.LABEL_OS,
        kube_names.LABEL_HOSTNAME,
        kube_names.LABEL_INSTANCE_TYPE,
        kube_names.LABEL_REGION,
        kube_names.LABEL_ZONE,
        kube_names.LABEL_ARCH_BETA,
        kube_names.LABEL_OS_BETA,
        kube_names.LABEL_INSTANCE_TYPE_BETA,
        kube_names.LABEL_REGION_BETA,
        kube_names.LABEL_ZONE_BETA,
        kube_names.LABEL_ROLE_MASTER,
        names.LABEL_POOL,
    )
)


@dataclass(frozen=True, slots=True)
class Location:
    """Region and zone of pools that name none."""

    region: str
    zone: str


def pool_problems(pool: file_format.Pool, types: Collection[str]) -> Iterator[Problem]:
    """Fields that are valid alone but not together. `types` are the known instance types."""
    if pool.instance_type not in types:
        hint = did_you_mean(pool.instance_type, types) or "; describe it under instanceTypes"
        yield Problem(f'no instance type "{pool.instance_type}" is known{hint}', ("instanceType",))
    if pool.autoscaling:
        low, high = pool.autoscaling.min, pool.autoscaling.max
        if low > high:
            yield Problem(
                f"wanted at least the minimum, {low}; found {high}", ("autoscaling", "max")
            )
        elif not low <= pool.count <= high:
            yield Problem(
                f"wanted a count within autoscaling, {low} to {high}; found {pool.count}",
                ("count",),
            )
    yield from _machine_problems(pool)
    for key in pool.labels:
        if key in _SET_BY_US:
            yield Problem("this label is set by gpupool itself", ("labels", key))
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(pool.taints):
        if (taint.key, taint.effect) in seen:
            yield Problem(f"a taint {taint.key}:{taint.effect} is already there", ("taints", index))
        seen.add((taint.key, taint.effect))


def _machine_problems(pool: file_format.Pool) -> Iterator[Problem]:
    if not pool.machines:
        return
    if pool.count > (there := len(pool.machines)):
        yield Problem(
            f"wanted at most {there}, as many as the pool has machines; found {pool.count}",
            ("count",),
        )
    if pool.autoscaling:
        text = "a pool of machines that exist does not scale by itself: leave it out"
        yield Problem(text, ("autoscaling",))
    if pool.node_names:
        yield Problem("nodes have the names of their machines: leave it out", ("nodeNames",))
    for index, name in enumerate(pool.machines):
        if name in pool.machines[:index]:
            yield Problem(f'the machine "{name}" is given twice', ("machines", index))


def pool_spec(pool: file_format.Pool, location: Location, known: Catalogue) -> PoolSpec:
    """`pool` must have no problems."""
    region = pool.region or location.region
    return PoolSpec(
        name=pool.name,
        count=pool.count,
        instance_type=known.instance_types[pool.instance_type],
        region=region,
        zone=pool.zone or (location.zone if region == location.region else f"{region}-a"),
        os=known.operating_systems[pool.os],
        role=Role(pool.role),
        labels=dict(pool.labels),
        taints=tuple(Taint(t.key, t.effect, t.value) for t in pool.taints),
        tags=dict(pool.tags),
        resource_group=pool.resource_group,
        managed=pool.managed,
        autoscaling=Autoscaling(pool.autoscaling.min, pool.autoscaling.max)
        if pool.autoscaling
        else None,
        naming=NodeNaming(pool.naming),
        node_names=tuple(pool.node_names),
        machines=tuple(pool.machines),
    )
