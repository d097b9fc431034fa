"""The files that strangers look for: they are read by machines, and what they name exists."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
PROSE = sorted(
    [*(ROOT / ".github").rglob("*.md"), *(ROOT / ".github").rglob("*.yml"), *ROOT.glob("*.md")]
)
REPOSITORY_PATH = re.compile(r"`((?:\.ci|docs|src|tests|tools|deploy|bench|testbed)/[\w./-]+)`")


def parsed(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def commands(job: Any) -> str:
    return "\n".join(step["run"] for step in job["steps"] if "run" in step)


def test_the_workflow_runs_what_developers_run() -> None:
    jobs = parsed(WORKFLOW)["jobs"]
    assert ".ci/run" in commands(jobs["check-and-test"]).split()
    assert ".ci/kubernetes" in commands(jobs["kubernetes"]).split()


def test_every_make_target_and_script_of_the_workflow_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    run = "\n".join(commands(job) for job in parsed(WORKFLOW)["jobs"].values())
    made = [target for line in re.findall(r"make ([a-z -]+)", run) for target in line.split()]
    assert made
    assert set(made) <= targets
    scripts = re.findall(r"\.ci/\S+", run)
    assert all((ROOT / script).is_file() for script in scripts)


def test_the_workflow_cannot_write_to_the_repository() -> None:
    assert parsed(WORKFLOW)["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_form_asks_questions_of_kinds_that_github_knows(form: Path) -> None:
    body = parsed(form)["body"]
    kinds = {"markdown", "textarea", "input", "dropdown", "checkboxes"}
    assert {field["type"] for field in body} <= kinds
    ids = [field["id"] for field in body if field["type"] != "markdown"]
    assert len(ids) == len(set(ids)) > 1


@pytest.mark.parametrize("page", PROSE, ids=lambda page: page.name)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    if page.name == "CHANGELOG.md":  # tells of what was
        return
    named = REPOSITORY_PATH.findall(page.read_text(encoding="utf-8"))
    missing = [path for path in named if not (ROOT / path).exists()]
    # Made by the build, or by the recording tools.
    assert not [path for path in missing if "_native" not in path]


def test_hooks_call_only_programs_of_this_repository() -> None:
    repositories = parsed(ROOT / ".pre-commit-config.yaml")["repos"]
    assert [each["repo"] for each in repositories] == ["local"]
    for hook in repositories[0]["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"].startswith(".venv/bin/")
        for path in re.findall(r"tests/\S+", hook["entry"]):
            assert (ROOT / path).is_file()


def test_all_that_is_released_has_one_version() -> None:
    """Three distributions, the pins between them, the chart and the image: see RELEASE.md."""
    projects = [ROOT / "pyproject.toml", *sorted(ROOT.glob("src/*/pyproject.toml"))]
    assert len(projects) == 3
    versions = {_found(r'^__version__ = "(.+)"', _version_file(path)) for path in projects}
    pins = re.compile(r'"(?:localkube|kubeclient)(?:\[\w+\])?==([^"]+)"')
    versions |= {pin for path in projects for pin in pins.findall(path.read_text("utf-8"))}
    chart = parsed(ROOT / "deploy" / "gpupool" / "Chart.yaml")
    versions |= {chart["version"], chart["appVersion"]}
    versions.add(_found(r"gpupool/gpupool:(\S+)", ROOT / "deploy" / "Dockerfile"))
    assert len(versions) == 1


def _version_file(project: Path) -> Path:
    """The file from which hatchling takes the version of a distribution."""
    hatch = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["hatch"]
    return project.parent / str(hatch["version"]["path"])


def _found(pattern: str, path: Path) -> str:
    match = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    assert match is not None, path
    return match[1]


def test_the_order_of_sections_in_the_security_page_answers_a_reporter_first() -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", page, re.MULTILINE)[:2] == [
        "Report a vulnerability privately",
        "Which versions get fixes",
    ]
