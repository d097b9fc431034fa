import pytest

from gpupool.localcluster.kubelet.images import Built, image_name, program


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
    assert program("tensorflow/tensorflow:1.4", ["sh"], ["-c", "x"]).argv == ("sh", "-c", "x")
    assert program("nginx", ["sleep", "1"], []).built is Built.NONE


def test_shells_run_their_arguments_or_themselves() -> None:
    assert program("alpine:3", [], ["echo", "hi"]).argv == ("echo", "hi")
    assert program("busybox", [], []).argv == ("sh",)


@pytest.mark.parametrize(
    ("image", "args", "built"),
    [
        ("nginx", [], Built.WEB),
        ("nginx", ["nginx", "-g", "daemon off;"], Built.WEB),
        ("registry.k8s.io/pause:3.9", [], Built.PAUSE),
        ("tensorflow/tensorflow:1.4.1-gpu-py3", [], Built.STAND_IN),
        ("cheyang/gpu-player:v2", ["--flag"], Built.STAND_IN),
    ],
)
def test_other_images_are_stood_in_for(image: str, args: list[str], built: Built) -> None:
    assert program(image, [], args).built is built
