import pytest

from gpupool.localcluster.kubelet.images import Built, Image, image_name, program, repository


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("busybox", "busybox"),
        ("busybox:1.36", "busybox"),
        ("docker.io/library/nginx@sha256:abc", "nginx"),
        ("localhost:5000/team/nginx:1.27@sha256:abc", "nginx"),
        ("registry.example/a/b/c", "c"),
    ],
)
def test_the_name_is_the_last_part(image: str, name: str) -> None:
    assert image_name(image) == name


def test_a_command_always_wins() -> None:
    assert program("tensorflow/tensorflow:1.4", ["sh"], ["-c", "x"], {}).argv == ("sh", "-c", "x")
    assert program("nginx", ["sleep", "1"], [], {}).built is Built.NONE


def test_shells_run_their_arguments_or_themselves() -> None:
    assert program("alpine:3", [], ["echo", "hi"], {}).argv == ("echo", "hi")
    assert program("busybox", [], [], {}).argv == ("sh",)


@pytest.mark.parametrize(
    ("image", "args", "built"),
    [
        ("nginx", [], Built.WEB),
        ("nginx", ["nginx", "-g", "daemon off;"], Built.WEB),
        ("registry.k8s.io/pause:3.9", [], Built.PAUSE),
        ("k8s.gcr.io/pause:2.0", [], Built.PAUSE),
        ("tensorflow/tensorflow:1.4.1-gpu-py3", [], Built.NOTEBOOK),
        ("cheyang/gpu-player:v2", [], Built.GPU_PLAYER),
        ("example.com/whatever:v2", ["--flag"], Built.STAND_IN),
    ],
)
def test_other_images_are_stood_in_for(image: str, args: list[str], built: Built) -> None:
    assert program(image, [], args, {}).built is built


def test_an_image_has_the_files_that_its_command_names() -> None:
    image = "registry.example/tensorflow-samples/tensorflow-gpu-mem:10.0-runtime-centos7"
    found = program(image, ["python3", "/app/main.py"], [], {})
    assert found.argv == ("python3", "/app/main.py")
    assert found.files["/app/main.py"].is_file()


@pytest.mark.parametrize(
    ("command", "args", "argv"),
    [
        ([], [], ("train", "--epochs=3")),
        ([], ["--epochs=5"], ("train", "--epochs=5")),
        (["sh"], [], ("sh",)),
    ],
)
def test_the_cluster_file_adds_images(
    command: list[str], args: list[str], argv: tuple[str, ...]
) -> None:
    known = {"example.com/team/trainer": Image(("train",), ("--epochs=3",))}
    for image in ("example.com/team/trainer", "example.com/team/trainer:v2@sha256:0"):
        assert program(image, command, args, known).argv == argv
    assert program("trainer", [], [], known).built is Built.STAND_IN


def test_a_repository_has_its_registry() -> None:
    assert repository("localhost:5000/team/a:1@sha256:0") == "localhost:5000/team/a"
