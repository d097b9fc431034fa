"""Programs that run in place of an image's own: what they get, and what holds for them."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kubeclient.objects import Obj
from localkube.kubelet.images import KnownImages, StandIn
from localkube.kubelet.settings import FleetSettings
from tests.localkube.kubelet.world import container, pod, settings, world

# Prints what it got, then takes 80 MiB.
PROGRAM = """
import importlib.util, json, os, sys, time

def main():
    has_packages = importlib.util.find_spec("orjson") is not None
    names = ("FROM_IMAGE", "BOTH", "HOME")
    got = [sys.argv[1:], has_packages, {name: os.environ.get(name) for name in names}]
    print(json.dumps(got), flush=True)
    print("title", open("/proc/self/cmdline").read().rstrip("\\0"), "end", flush=True)
    taken = bytearray(80 << 20)
    time.sleep(1000)
"""


def with_image(directory: Path, stand_in: StandIn, *, isolate: bool = True) -> FleetSettings:
    package = directory / "packages" / "acme"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "lab.py").write_text(PROGRAM)
    images = KnownImages(stand_ins={"lab": stand_in})
    chosen = replace(settings(directory), images=images, packages=(package,))
    return replace(chosen, isolate=isolate, usage_s=0.05)


def lab(**more: object) -> Obj:
    return pod("p", container={"image": "lab:v1", "args": ["--flag"], **more})


@pytest.mark.parametrize("runs_users_code", [True, False])
async def test_it_gets_the_args_if_it_runs_what_users_type(
    tmp_path: Path, runs_users_code: bool
) -> None:
    mine = StandIn("acme.lab", ("--mine",), runs_users_code=runs_users_code)
    async with world(tmp_path, with_image(tmp_path, mine)) as here:
        found = await here.run(lab())
        wanted = '["--mine", "lab:v1", "--flag"]' if runs_users_code else '["--mine", "lab:v1"]'
        await here.logged(found, wanted)


async def test_it_is_called_after_its_image_and_shows_no_path_of_this_machine(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, with_image(tmp_path, StandIn("acme.lab"))) as here:
        found = await here.run(lab(image="registry.example/team/lab:v1"))
        await here.logged(found, "title lab end")


@pytest.mark.parametrize("with_packages", [True, False])
async def test_it_has_the_packages_of_this_python_if_it_needs_them(
    tmp_path: Path, with_packages: bool
) -> None:
    mine = StandIn("acme.lab", with_packages=with_packages)
    async with world(tmp_path, with_image(tmp_path, mine)) as here:
        found = await here.run(lab())
        await here.logged(found, f'["lab:v1"], {"true" if with_packages else "false"},')


@pytest.mark.parametrize("isolate", [True, False])
async def test_it_has_the_variables_of_its_image_and_those_of_the_pod_replace_them(
    tmp_path: Path, isolate: bool
) -> None:
    variables = {"FROM_IMAGE": "1", "BOTH": "image", "HOME": "/home/lab"}
    mine = StandIn("acme.lab", variables=variables)
    async with world(tmp_path, with_image(tmp_path, mine, isolate=isolate)) as here:
        own_view = await here.fleet.mounts_into_containers()
        found = await here.run(lab(env=[{"name": "BOTH", "value": "pod"}]))
        said = await here.logged(found, '{"FROM_IMAGE": "1", "BOTH": "pod", "HOME": ')
        # A path of the image is one of this machine where containers see the machine.
        assert ('"HOME": "/home/lab"' in said) is own_view


@pytest.mark.parametrize("mounts", [(), ("work",)], ids=["alone", "with a volume in it"])
async def test_a_command_of_its_own_finds_the_home_directory_of_the_image(
    tmp_path: Path, mounts: tuple[str, ...]
) -> None:
    mine = StandIn("acme.lab", variables={"HOME": "/home/lab"})
    given = {"volumeMounts": [{"name": "v", "mountPath": f"/home/lab/{name}"} for name in mounts]}
    script = "cd && pwd && touch mine && ls && ls /root && exec sleep 1000"
    async with world(tmp_path, with_image(tmp_path, mine)) as here:
        if not await here.fleet.mounts_into_containers():
            pytest.skip("this machine allows no user namespaces")
        container = {"image": "lab:v1", **given}
        volumes = [{"name": "v", "emptyDir": {}}]
        found = await here.run(pod("p", "sh", "-c", script, container=container, volumes=volumes))
        listed = "".join(f"{name}\n" for name in sorted(("mine", *mounts, *_python_in("/root"))))
        await here.logged(found, f"/home/lab\n{listed}{listed}")


def _python_in(directory: str) -> set[str]:
    """The Python that runs this is in containers, too, wherever it is. `ls` hides .pyenv."""
    places = [Path(place) for place in (sys.prefix, sys.base_prefix)]
    below = [place.relative_to(directory) for place in places if place.is_relative_to(directory)]
    return {place.parts[0] for place in below if not place.parts[0].startswith(".")}


async def test_a_memory_limit_holds_for_what_users_type(tmp_path: Path) -> None:
    mine = StandIn("acme.lab", runs_users_code=True)
    resources = {"limits": {"memory": "40Mi"}, "requests": {"memory": "0"}}
    async with world(tmp_path, with_image(tmp_path, mine)) as here:
        found = await here.run(
            lab(resources=resources), lambda p: container(p).get("restartCount", 0) > 0
        )
        assert container(found)["lastState"]["terminated"]["reason"] == "OOMKilled"
