"""The instance types of pools: the catalogue that comes with gpupool, and a cluster file's own."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import msgspec

from gpupool.contract.yaml_document import Document, read_document
from gpupool.local.config import file_format
from gpupool.local.config.spec import GpuModel, InstanceType, OperatingSystem


@dataclass(frozen=True, slots=True)
class Catalogue:
    instance_types: Mapping[str, InstanceType]
    gpu_models: Mapping[str, GpuModel]
    operating_systems: Mapping[str, OperatingSystem]


@cache
def catalogue() -> Catalogue:
    """The catalogue that comes with gpupool."""
    text = files(__package__).joinpath("catalogue.yaml").read_text(encoding="utf-8")
    document = read_document(text)
    assert isinstance(document, Document), document
    data = msgspec.convert(document.data, file_format.Catalogue)
    models = gpu_models(data.gpu_models)
    return Catalogue(
        instance_types={row.name: instance_type(row, models) for row in data.instance_types},
        gpu_models=models,
        operating_systems={
            row.name: OperatingSystem(row.name, row.image, row.kernel_version)
            for row in data.operating_systems
        },
    )


def gpu_models(rows: Iterable[file_format.GpuModel]) -> dict[str, GpuModel]:
    return {row.name: GpuModel(row.name, row.memory_mib) for row in rows}


def instance_type(row: file_format.InstanceType, models: Mapping[str, GpuModel]) -> InstanceType:
    """`models` must contain the row's model."""
    memory_mib = int(row.memory_gib * 1024)
    if not row.gpus:
        return InstanceType(row.name, row.vcpus, memory_mib)
    gpus = row.gpus
    driver = gpus.driver or ""
    return InstanceType(row.name, row.vcpus, memory_mib, models[gpus.model], gpus.count, driver)
