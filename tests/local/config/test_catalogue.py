"""The catalogue of machines."""

import pytest

from gpupool.local.config.catalogue import catalogue


@pytest.mark.parametrize(
    ("name", "vcpus", "memory_gib", "model", "gpus"),
    [
        ("ecs.gn4-c4g1.xlarge", 4, 30, "Tesla M40", 1),
        ("ecs.gn5-c4g1.xlarge", 4, 30, "Tesla P100-PCIE-16GB", 1),
        ("ecs.gn5i-c2g1.large", 2, 8, "Tesla P4", 1),
        ("ecs.gn6v-c8g1.2xlarge", 8, 32, "Tesla V100-SXM2-16GB", 1),
        ("ecs.gn6v-c8g1.16xlarge", 64, 256, "Tesla V100-SXM2-16GB", 8),
        ("ecs.gn6i-c4g1.xlarge", 4, 15, "Tesla T4", 1),
        ("ecs.gn7-c13g1.26xlarge", 104, 756, "NVIDIA A100-SXM4-40GB", 8),
        ("ecs.gn7i-c8g1.2xlarge", 8, 30, "NVIDIA A10", 1),
        ("ecs.g6.xlarge", 4, 16, "", 0),
        ("ecs.r7.32xlarge", 128, 1024, "", 0),
    ],
)
def test_each_family_is_there(
    name: str, vcpus: int, memory_gib: int, model: str, gpus: int
) -> None:
    machine = catalogue().instance_types[name]
    assert (machine.vcpus, machine.memory_mib) == (vcpus, memory_gib * 1024)
    assert (machine.gpu.name if machine.gpu else "", machine.gpu_count) == (model, gpus)


def test_cards_have_the_memory_that_the_documents_show() -> None:
    models = catalogue().gpu_models
    assert models["Tesla M40"].memory_mib == 12209
    assert models["Tesla V100-SXM2-16GB"].memory_mib == 16130
