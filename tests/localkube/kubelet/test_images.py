from pathlib import Path

import pytest

from localkube.kubelet.images import (
    Image,
    KnownImages,
    StandIn,
    image_name,
    image_variables,
    program,
    repository,
)

NONE = KnownImages()


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
    assert program("example/tensorflow:1.4", ["sh"], ["-c", "x"], NONE).argv == ("sh", "-c", "x")
    assert program("nginx", ["sleep", "1"], [], NONE).stand_in is None


def test_shells_run_their_arguments_or_themselves() -> None:
    assert program("alpine:3", [], ["echo", "hi"], NONE).argv == ("echo", "hi")
    assert program("busybox", [], [], NONE).argv == ("sh",)


@pytest.mark.parametrize(
    ("image", "args", "what"),
    [
        ("nginx", [], "web"),
        ("nginx", ["nginx", "-g", "daemon off;"], "web"),
        ("registry.k8s.io/pause:3.9", [], "pause"),
        ("k8s.gcr.io/pause:2.0", [], "pause"),
        ("example.com/whatever:v2", ["--flag"], "stand-in"),
    ],
)
def test_other_images_are_stood_in_for(image: str, args: list[str], what: str) -> None:
    found = program(image, [], args, NONE)
    assert found.stand_in is not None
    assert found.stand_in.arguments == (what,)
    assert found.only_waits is (what == "stand-in")


def test_the_settings_add_stand_ins_with_files_that_commands_may_name() -> None:
    mine = StandIn("mine.program", files={"/app/main.py": Path(__file__)})
    known = KnownImages(stand_ins={"trainer": mine})
    assert program("example.com/trainer:v1", [], [], known).stand_in is mine
    found = program("example.com/trainer:v1", ["python3", "/app/main.py"], [], known)
    assert (found.argv, found.stand_in) == (("python3", "/app/main.py"), None)
    assert found.files["/app/main.py"].is_file()


def test_one_stand_in_serves_all_images_of_an_owner_but_those_with_their_own() -> None:
    every, one = StandIn("every"), StandIn("one")
    known = KnownImages(stand_ins={"team/*": every, "trainer": one})
    assert program("registry.example/team/lab:v1", [], [], known).stand_in is every
    assert program("team/trainer", [], [], known).stand_in is one
    assert program("other/lab", [], [], known).only_waits
    assert program("lab", [], [], known).only_waits


def test_a_stand_in_has_the_variables_of_its_image_also_for_a_command() -> None:
    known = KnownImages(
        commands={"team/own": Image(("run",))},
        stand_ins={"lab": StandIn("lab", variables={"A": "1"}), "own": StandIn("x")},
    )
    assert image_variables("team/lab:v1", known) == {"A": "1"}
    assert image_variables("team/own:v2", known) == {}
    assert image_variables("nginx", known) == {}


def test_the_settings_add_shells() -> None:
    known = KnownImages(shells=frozenset({"toolbox"}))
    assert program("example.com/toolbox:1", [], [], known).argv == ("sh",)


@pytest.mark.parametrize(
    ("command", "args", "argv"),
    [
        ([], [], ("train", "--epochs=3")),
        ([], ["--epochs=5"], ("train", "--epochs=5")),
        (["sh"], [], ("sh",)),
    ],
)
def test_the_settings_add_commands(
    command: list[str], args: list[str], argv: tuple[str, ...]
) -> None:
    known = KnownImages({"example.com/team/trainer": Image(("train",), ("--epochs=3",))})
    for image in ("example.com/team/trainer", "example.com/team/trainer:v2@sha256:0"):
        assert program(image, command, args, known).argv == argv
    assert program("trainer", [], [], known).only_waits


def test_a_repository_has_its_registry() -> None:
    assert repository("localhost:5000/team/a:1@sha256:0") == "localhost:5000/team/a"
