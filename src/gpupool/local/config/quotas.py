"""Quotas of the platform: how many clusters, nodes and routes in each, load balancers... Pure.

A quota is a number that people can raise. Exceeding one is a value that says which quota, how much
is used and how to raise it. It is checked before anything is created.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace

from gpupool.local.config.schema_problems import did_you_mean
from gpupool.local.config.spec import Quotas

ENVIRONMENT_PREFIX = "GPUPOOL_QUOTA_"


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A refusal: this quota does not allow it."""

    quota: str  # as users write it: "nodes-per-cluster"
    limit: int
    used: int
    wanted: int  # the total, including what is used

    def __str__(self) -> str:
        return (
            f"quota {self.quota} is {self.limit}: {self.used} used, {self.wanted} wanted. "
            f"Raise it with: gpupool quota set {self.quota}={self.wanted}"
        )


def quota_names() -> tuple[str, ...]:
    return tuple(field.name.replace("_", "-") for field in fields(Quotas))


def quota_rows(quotas: Quotas) -> Iterator[tuple[str, int]]:
    for name, limit in asdict(quotas).items():
        yield name.replace("_", "-"), limit


def with_changes(quotas: Quotas, changes: Mapping[str, int]) -> Quotas:
    """`changes` by the names that users write; check them with `parse_change` first."""
    return replace(quotas, **{name.replace("-", "_"): limit for name, limit in changes.items()})


def parse_change(text: str) -> tuple[str, int] | str:
    """ "nodes-per-cluster=100" -> its parts, or what is wrong with it."""
    name, equals, number = (part.strip() for part in text.partition("="))
    if not equals:
        return f'wanted NAME=NUMBER, for example nodes-per-cluster=100; found "{text}"'
    if name not in quota_names():
        hint = did_you_mean(name, quota_names()) or f"; there are {', '.join(quota_names())}"
        return f'there is no quota "{name}"{hint}'
    if not (number.isascii() and number.isdigit()) or len(number) > 9:
        return f'{name}: wanted a whole number from 0 to 999999999, found "{number}"'
    return name, int(number)


def changes_from_environment(environment: Mapping[str, str]) -> dict[str, int] | str:
    """GPUPOOL_QUOTA_NODES_PER_CLUSTER=100 and so on, or what is wrong with one of them."""
    changes: dict[str, int] = {}
    for name in quota_names():
        variable = ENVIRONMENT_PREFIX + name.replace("-", "_").upper()
        if variable in environment:
            change = parse_change(f"{name}={environment[variable]}")
            if isinstance(change, str):
                return f"{variable}: {change}"
            changes[name] = change[1]
    return changes


def exceeded_clusters(quotas: Quotas, *, existing: int, more: int = 1) -> tuple[Exceeded, ...]:
    return exceeded("clusters", quotas.clusters, existing, existing + more)


def exceeded_use(
    quotas: Quotas, *, used: Mapping[str, int], more: Mapping[str, int]
) -> tuple[Exceeded, ...]:
    """Of quotas that all clusters share, by name."""
    limits = dict(quota_rows(quotas))
    return tuple(
        over
        for name, each in more.items()
        for over in exceeded(name, limits[name], used[name], used[name] + each)
    )


def exceeded_nodes(quotas: Quotas, *, existing: int, more: int) -> tuple[Exceeded, ...]:
    """Every node also takes a route of the virtual network, which has a quota of its own."""
    wanted = existing + more
    return (
        *exceeded("nodes-per-cluster", quotas.nodes_per_cluster, existing, wanted),
        *exceeded("routes-per-cluster", quotas.routes_per_cluster, existing, wanted),
    )


def exceeded(name: str, limit: int, used: int, wanted: int) -> tuple[Exceeded, ...]:
    # A request for no more than is used is never refused: lowering a quota takes nothing away.
    if wanted <= limit or wanted <= used:
        return ()
    return (Exceeded(name, limit, used, wanted),)
