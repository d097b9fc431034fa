import pytest

from gpupool.local.config.cluster_file import ClusterFile, default_cluster_text, parse_cluster
from gpupool.local.images import known_images
from localkube.kubelet.images import program

FILE = parse_cluster(default_cluster_text())
assert isinstance(FILE, ClusterFile)
KNOWN = known_images(FILE.spec)


@pytest.mark.parametrize(
    ("image", "module", "arguments"),
    [
        ("tensorflow/tensorflow:1.4.1-gpu-py3", "notebook", ()),
        ("jupyter/tensorflow-notebook", "notebook", ()),
        ("quay.io/jupyter/scipy-notebook:latest", "notebook", ()),
        ("cheyang/gpu-player:v2", "gpu_memory", ("--allowed",)),
        ("registry.example/tensorflow-gpu-mem:10.0", "gpu_memory", ()),
    ],
)
def test_the_gpu_images_of_the_documents_have_stand_ins(
    image: str, module: str, arguments: tuple[str, ...]
) -> None:
    found = program(image, [], [], KNOWN).stand_in
    assert found is not None
    assert found.module == f"gpupool.local.programs.{module}"
    assert found.arguments == arguments


def test_a_command_always_wins() -> None:
    found = program("tensorflow/tensorflow:1.4", ["sh"], ["-c", "x"], KNOWN)
    assert (found.argv, found.stand_in) == (("sh", "-c", "x"), None)


def test_an_image_has_the_files_that_its_command_names() -> None:
    image = "registry.example/tensorflow-samples/tensorflow-gpu-mem:10.0-runtime-centos7"
    found = program(image, ["python3", "/app/main.py"], [], KNOWN)
    assert found.argv == ("python3", "/app/main.py")
    assert found.files["/app/main.py"].is_file()


def test_the_image_of_cuda_is_a_shell() -> None:
    assert program("nvidia/cuda:12.4.0-base", [], [], KNOWN).argv == ("sh",)
