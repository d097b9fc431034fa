"""The form of a new cluster: its fields, and the cluster file that they make. Pure."""

import re
from collections.abc import Mapping

from gpupool.console.machines import MachineType, offered_types
from gpupool.console.pages.existing import existing_fields, existing_of
from gpupool.console.pages.pool_form import SYSTEMS
from gpupool.console.parts.form import Field, FieldKind, Invalid
from gpupool.console.parts.lines import labels_of
from gpupool.console.platform import OwnMachine, Quota
from gpupool.console.words import Translate, word
from kubeclient.objects import Obj
from kubeclient.yaml_writing import dump_yaml

# As the cluster file wants them.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
_POOL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_REGION = re.compile(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?")
REGIONS = ("cn-beijing", "cn-hangzhou", "cn-shanghai", "cn-shenzhen", "cn-zhangjiakou")
POOLS = 3
_MASTER_TYPE = "ecs.g6.xlarge"
# Those of the document: two nodes with a P100 each.
_USUAL = ("ecs.gn5-c4g1.xlarge", 2)
_MOST = 100_000


def cluster_fields(
    t: Translate, machines: tuple[MachineType, ...], there: tuple[OwnMachine, ...] = ()
) -> tuple[Field, ...]:
    """`there`: instances that exist."""
    known = {each.name: each for each in machines}
    types = offered_types(t, known, known)
    families = {each.name: each.family for each in machines}
    return (
        Field("name", t("Cluster name"), is_required=True, longest=40),
        Field(
            "region",
            t("Region"),
            FieldKind.CHOICE,
            value=REGIONS[0],
            choices=tuple((each, each) for each in REGIONS),
        ),
        Field(
            "os",
            t("Operating system"),
            FieldKind.CHOICE,
            value=SYSTEMS[0],
            choices=tuple((each, each) for each in SYSTEMS),
        ),
        Field(
            "masters-count",
            t("Master nodes"),
            FieldKind.NUMBER,
            t("May be 0. Pods do not go to them."),
            "1",
            is_required=True,
            most=9,
        ),
        *(
            field
            for number in range(1, POOLS + 1)
            for field in _pool_fields(
                t, number, types, families, existing_fields(t, f"pool{number}-", there, known)
            )
        ),
    )


def _pool_fields(
    t: Translate,
    number: int,
    types: tuple[tuple[str, str], ...],
    families: Mapping[str, str],
    existing: tuple[Field, ...],
) -> tuple[Field, ...]:
    is_first = number == 1
    usual = _USUAL[0] if _USUAL[0] in dict(types) else (types[0][0] if types else "")
    return (
        Field(
            f"pool{number}-name",
            t("Node pool name"),
            help="" if is_first else t("Leave it empty if you need no such pool."),
            value="workers" if is_first else "",
            is_required=is_first,
            longest=63,
            # The others are folded by the template.
            section=t("Worker pool {number}", number=number) if is_first else "",
        ),
        *existing,
        Field(
            f"pool{number}-type",
            t("Instance type"),
            FieldKind.CHOICE,
            value=usual,
            choices=types,
            groups=families,
        ),
        Field(
            f"pool{number}-count",
            t("Nodes"),
            FieldKind.NUMBER,
            value=str(_USUAL[1]) if is_first else "1",
            most=_MOST,
        ),
        Field(
            f"pool{number}-labels",
            t("Node labels"),
            FieldKind.LINES,
            t("One per line: key=value"),
            longest=64_000,
            rows=2,
        ),
    )


def cluster_file(
    t: Translate,
    values: Mapping[str, str],
    quotas: Mapping[str, Quota],
    there: tuple[OwnMachine, ...] = (),
) -> str:
    """YAML. Raises Invalid."""
    if not _NAME.fullmatch(values["name"]):
        words = t("Wanted small letters, digits and hyphens, at most 40.")
        raise Invalid({"name": words})
    pools = [_pool(t, values, number, there) for number in range(1, POOLS + 1)]
    _check_names(t, pools)
    _check_machines(t, pools)
    pools = [pool for pool in pools if pool]
    masters = int(values["masters-count"] or 0)
    _check_shared(t, quotas)
    _check_nodes(t, masters + sum(pool["count"] for pool in pools), quotas)
    if masters:
        pools.insert(0, _masters(masters, values["os"]))
    file: Obj = {
        "apiVersion": "gpupool.io/v1alpha1",
        "kind": "Cluster",
        "name": values["name"],
        "region": values["region"],
        "pools": pools,
    }
    return dump_yaml(file, allow_unicode=True)


def _masters(count: int, system: str) -> Obj:
    return {
        "name": "control-plane",
        "role": "control-plane",
        "instanceType": _MASTER_TYPE,
        "count": count,
        "os": system,
    }


def _pool(
    t: Translate, values: Mapping[str, str], number: int, there: tuple[OwnMachine, ...]
) -> Obj:
    """Empty: there is none. Raises Invalid."""
    start = f"pool{number}"
    name = values[f"{start}-name"]
    if not name:
        return {}
    if not _POOL.fullmatch(name):
        raise Invalid({f"{start}-name": t("Wanted small letters, digits and hyphens.")})
    pool: Obj = {
        "name": name,
        "instanceType": values[f"{start}-type"],
        "count": int(values[f"{start}-count"] or 0),
        "os": values["os"],
    }
    if existing := existing_of(t, values, f"{start}-", there):
        pool["instanceType"] = existing.instance_type
        pool["count"] = len(existing.names)
        pool["machines"] = list(existing.names)
    labels = labels_of(t, f"{start}-labels", values[f"{start}-labels"])
    return {**pool, "labels": labels} if labels else pool


def _check_names(t: Translate, pools: list[Obj]) -> None:
    taken = {"control-plane"}
    for number, pool in enumerate(pools, start=1):
        if pool and pool["name"] in taken:
            words = t("There is another pool of this name.")
            raise Invalid({f"pool{number}-name": words})
        taken.add(pool.get("name", ""))


def _check_machines(t: Translate, pools: list[Obj]) -> None:
    taken: set[str] = set()
    for number, pool in enumerate(pools, start=1):
        machines = set(pool.get("machines") or ())
        if again := sorted(machines & taken):
            words = t("Another pool has these already: {names}", names=", ".join(again))
            raise Invalid({f"pool{number}-machines": words})
        taken |= machines


def _check_nodes(t: Translate, nodes: int, quotas: Mapping[str, Quota]) -> None:
    """Every node also takes a route of the virtual network."""
    wrong = [
        quota_words(t, quotas[name], nodes)
        for name in ("nodes-per-cluster", "routes-per-cluster")
        if name in quotas and nodes > quotas[name].limit
    ]
    if wrong:
        raise Invalid({"": "\n".join(wrong)})


_SHARED = {
    "security-groups": word("Security groups: {used} of {limit}"),
    "load-balancers": word("Load balancers: {used} of {limit}"),
    "eips": word("EIPs: {used} of {limit}"),
}


def shared_words(t: Translate, quotas: Mapping[str, Quota]) -> tuple[tuple[str, bool], ...]:
    """What all clusters would use with one more; and whether that is too much."""
    shared = [(words, quotas[name]) for name, words in _SHARED.items() if name in quotas]
    return tuple(_shared(t, words, each) for words, each in shared)


def _shared(t: Translate, words: str, quota: Quota) -> tuple[str, bool]:
    wanted = quota.used + quota.by_cluster
    if is_over(quota):
        return quota_words(t, quota, wanted), True
    return t(words, used=wanted, limit=quota.limit), False


def is_over(quota: Quota) -> bool:
    return quota.by_cluster > 0 and quota.used + quota.by_cluster > quota.limit


def _check_shared(t: Translate, quotas: Mapping[str, Quota]) -> None:
    wrong = [
        quota_words(t, each, each.used + each.by_cluster)
        for each in quotas.values()
        if is_over(each)
    ]
    if wrong:
        raise Invalid({"": "\n".join(wrong)})


def quota_words(t: Translate, quota: Quota, wanted: int) -> str:
    return t(
        "Quota {name} is {limit}, wanted {wanted}. "
        "Raise it with: gpupool quota set {name}={wanted}",
        name=quota.name,
        limit=quota.limit,
        wanted=wanted,
    )
