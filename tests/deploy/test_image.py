"""deploy/Dockerfile fits the chart and the package. tests/kubernetes/test_image.py follows it."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from kubeclient.objects import Obj
from testbed.dockerfile import Stage, read_stages

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"


@pytest.fixture(scope="module")
def stages() -> list[Stage]:
    return read_stages((DEPLOY / "Dockerfile").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def project() -> Obj:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def copied(stage: Stage) -> list[str]:
    """From this directory."""
    steps = [step.text for step in stage.steps if step.instruction == "COPY"]
    return [name for text in steps if "--from" not in text for name in text.split()[:-1]]


def test_what_is_copied_is_there_and_is_all_that_a_wheel_needs(
    stages: list[Stage], project: Obj
) -> None:
    names = copied(stages[0])
    assert [name for name in names if not (ROOT / name).exists()] == []
    hatch = project["tool"]["hatch"]
    needed = {
        "pyproject.toml",
        project["project"]["readme"],
        hatch["build"]["targets"]["wheel"]["hooks"]["custom"]["path"],
        "native",  # which the hook builds
        hatch["version"]["path"].split("/")[0],
        *(path.split("/")[0] for path in hatch["build"]["targets"]["wheel"]["packages"]),
        *hatch["build"]["targets"]["wheel"]["force-include"],
    }
    assert needed <= set(names)


def test_its_python_is_one_that_we_run_on(stages: list[Stage]) -> None:
    assert stages[0].base == stages[-1].base
    version = re.fullmatch(r"python:(\d+)\.(\d+)-slim", stages[-1].base)
    assert version is not None
    assert (int(version[1]), int(version[2])) >= (3, 11)


def test_its_program_is_ours_and_on_its_path(stages: list[Stage], project: Obj) -> None:
    (program,) = json.loads(stages[-1].last("ENTRYPOINT"))
    assert program in project["project"]["scripts"]
    (path,) = re.findall(r"PATH=(\S+)", stages[-1].last("ENV"))
    made = stages[-1].last("COPY").split()[-1]
    assert path.split(":")[0] == f"{made}/bin"
    for template in (DEPLOY / "gpupool" / "templates").glob("*.yaml"):
        for command in re.findall(r"command: \[(\w+), ", template.read_text(encoding="utf-8")):
            assert command == program


def test_its_user_is_the_one_of_the_chart(stages: list[Stage]) -> None:
    user, group = stages[-1].last("USER").split(":")
    parts = (DEPLOY / "gpupool" / "templates" / "_parts.tpl").read_text(encoding="utf-8")
    assert re.findall(r"runAsUser: (\d+)", parts) == [user]
    assert re.findall(r"runAsGroup: (\d+)", parts) == [group]


def test_its_name_is_the_one_of_the_chart() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    (told,) = re.findall(r"docker build .* -t (\S+) ", text)
    chart = yaml.safe_load((DEPLOY / "gpupool" / "Chart.yaml").read_text(encoding="utf-8"))
    values = yaml.safe_load((DEPLOY / "gpupool" / "values.yaml").read_text(encoding="utf-8"))
    assert told == f"{values['image']['repository']}:{chart['appVersion']}"
