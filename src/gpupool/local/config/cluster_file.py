"""Parses a cluster file (YAML) into a ClusterSpec, or lists everything that is wrong with it.

First the schema is checked (schema_problems.py), then what fields mean together: names that must be
unique, instance types that must exist, numbers and networks that must fit.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from ipaddress import IPv4Network
from itertools import count
from typing import Any, TypeAlias

import msgspec

from gpupool.contract.yaml_document import Document, Problem, read_document
from gpupool.local.config import file_format
from gpupool.local.config.catalogue import (
    Catalogue,
    catalogue,
    gpu_models,
    instance_type,
)
from gpupool.local.config.nodes import POD_PREFIX
from gpupool.local.config.pools import Location, pool_problems, pool_spec
from gpupool.local.config.schema_problems import did_you_mean, schema_problems
from gpupool.local.config.spec import ClusterSpec, ImageSpec, Network, Quotas
from localkube.apiserver.service_addresses import SERVICE_RANGE


@dataclass(frozen=True, slots=True)
class ClusterFile:
    name: str  # "" where the file gives none
    spec: ClusterSpec


Problems: TypeAlias = tuple[Problem, ...]


def parse_cluster(text: str) -> ClusterFile | Problems:
    document = read_document(text)
    if not isinstance(document, Document):
        return document
    problems = list(schema_problems(document, _schema()))
    sound = _sound(document, problems)
    if sound is None:
        return _in_order(problems)
    file, pools = sound
    problems += _catalogue_problems(document, file)
    problems += _network_problems(document, file.network)
    problems += _pools_problems(document, file, pools)
    return _in_order(problems) if problems else ClusterFile(file.name or "", _spec(file))


def _sound(
    document: Document, problems: Iterable[Problem]
) -> tuple[file_format.Cluster, list[int]] | None:
    """The valid part of the file, and the indexes of its valid pools, so that problems of meaning
    can be reported in the same run as those of the schema. None when an invalid part would change
    the meaning of the rest: then checking goes no further."""
    wrong = {each.path[: 2 if each.path[:1] == ("pools",) else 1] for each in problems}
    if wrong & {(), ("pools",), ("gpuModels",), ("instanceTypes",)}:
        return None
    data = {key: value for key, value in document.data.items() if (key,) not in wrong}
    places = [index for index in range(len(data["pools"])) if ("pools", index) not in wrong]
    rest = {
        "apiVersion": "gpupool.io/v1alpha1",
        "kind": "Cluster",
        **data,
        "pools": [data["pools"][index] for index in places],
    }
    return msgspec.convert(rest, file_format.Cluster), places


def default_cluster_text() -> str:
    return files(__package__).joinpath("default_cluster.yaml").read_text(encoding="utf-8")


def report(problems: Iterable[Problem], source: str) -> str:
    """One line for each problem, as compilers write them."""
    return "\n".join(problem.line(source) for problem in problems)


@cache
def _schema() -> dict[str, Any]:
    return file_format.cluster_schema()


def _in_order(problems: Iterable[Problem]) -> Problems:
    """In the order of the file."""
    return tuple(sorted(problems, key=lambda p: (p.mark.line, p.mark.column) if p.mark else (0, 0)))


def _spec(file: file_format.Cluster) -> ClusterSpec:
    known = _extended(file)
    location = _location(file)
    changes = {
        key: value
        for key, value in msgspec.structs.asdict(file.quotas).items()
        if value is not msgspec.UNSET
    }
    return ClusterSpec(
        region=location.region,
        zone=location.zone,
        network=_network(file.network),
        pools=tuple(pool_spec(pool, location, known) for pool in file.pools),
        quotas=replace(Quotas(), **changes),
        instance_types=known.instance_types,
        images={
            row.name: ImageSpec(tuple(row.command), tuple(row.args), row.directory)
            for row in file.images
        },
    )


def _location(file: file_format.Cluster) -> Location:
    return Location(file.region, file.zone or f"{file.region}-a")


def _extended(file: file_format.Cluster) -> Catalogue:
    """The catalogue with the entries of the file, which override those of the same name."""
    base = catalogue()
    models = {**base.gpu_models, **gpu_models(file.gpu_models)}
    own = {
        row.name: instance_type(row, models)
        for row in file.instance_types
        if not row.gpus or row.gpus.model in models
    }
    return replace(base, gpu_models=models, instance_types={**base.instance_types, **own})


def _catalogue_problems(document: Document, file: file_format.Cluster) -> Iterator[Problem]:
    yield from _twice(document, "gpuModels", [row.name for row in file.gpu_models])
    yield from _twice(document, "instanceTypes", [row.name for row in file.instance_types])
    yield from _twice(document, "images", [row.name for row in file.images])
    models = {**catalogue().gpu_models, **gpu_models(file.gpu_models)}
    for index, row in enumerate(file.instance_types):
        if row.gpus and row.gpus.model not in models:
            hint = did_you_mean(row.gpus.model, models) or "; describe it under gpuModels"
            yield document.problem(
                f'no card "{row.gpus.model}" is known{hint}',
                "instanceTypes",
                index,
                "gpus",
                "model",
            )


def _pools_problems(
    document: Document, file: file_format.Cluster, places: Sequence[int]
) -> Iterator[Problem]:
    """`places` are the indexes of the pools in the document."""
    yield from _twice(document, "pools", [pool.name for pool in file.pools], places)
    known = _extended(file)
    # A type of the file whose card is unknown is reported there, not again at each pool.
    names = {*known.instance_types, *(row.name for row in file.instance_types)}
    first_use: dict[str, str] = {}
    for index, pool in zip(places, file.pools, strict=True):
        for problem in pool_problems(pool, names):
            yield document.problem(problem.text, "pools", index, *problem.path)
        if pool.machines and pool.count < (there := len(pool.machines)):
            yield document.problem(
                f"wanted {there}, one node for each machine of the pool; found {pool.count}",
                *("pools", index, "count"),
            )
        yield from _names_in_use(document, index, pool, first_use)


def _names_in_use(
    document: Document, index: int, pool: file_format.Pool, first_use: dict[str, str]
) -> Iterator[Problem]:
    given = [("nodeNames", place, name) for place, name in enumerate(pool.node_names)]
    given += [("machines", place, name) for place, name in enumerate(pool.machines)]
    for field, place, name in given:
        # A machine twice in one pool is told by `pool_problems`.
        if name in first_use and not (field == "machines" and first_use[name] == pool.name):
            yield document.problem(
                f'the name "{name}" is already given to a node of pool "{first_use[name]}"',
                *("pools", index, field, place),
            )
        first_use.setdefault(name, pool.name)


def _twice(
    document: Document, where: str, names: list[str], places: Iterable[int] | None = None
) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, name in zip(places or count(), names, strict=False):
        if name in seen:
            yield document.problem(f'the name "{name}" is given twice', where, index, "name")
        seen.add(name)


def _network(networks: file_format.Networks) -> Network:
    return Network(*map(IPv4Network, (networks.nodes, networks.pods)))


def _network_problems(document: Document, networks: file_format.Networks) -> Iterator[Problem]:
    parsed = {"services": SERVICE_RANGE}
    for name, text in msgspec.structs.asdict(networks).items():
        try:
            network = IPv4Network(text)
        except ValueError as error:
            yield document.problem(
                f'wanted an IPv4 network such as 192.168.0.0/16, found "{text}": {error}',
                *("network", name),
            )
            continue
        smallest = POD_PREFIX if name == "pods" else 28
        if network.prefixlen > smallest:
            yield document.problem(f"wanted /{smallest} or larger, found {text}", "network", name)
        for other, taken in parsed.items():
            if network.overlaps(taken):
                yield document.problem(f"{text} overlaps with {taken} of {other}", "network", name)
        parsed[name] = network
