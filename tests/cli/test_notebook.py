"""What `gpupool example` does for a notebook: installs JupyterLab, and says how to open it."""

import importlib.metadata
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpupool.cli import notebook
from gpupool.cli.example import waiting_steps
from gpupool.cli.next_steps import Step
from gpupool.cli.notebook import (
    how_to_open,
    install_jupyter,
    notebooks,
    old_words,
    requirements,
)
from gpupool.cli.progress import Progress
from gpupool.local.programs import jupyter

LAST = "Installing collected packages: b, c"
ROOT = Path(__file__).parent.parent.parent
MANIFESTS = list(yaml.safe_load_all((ROOT / "examples/notebook-service.yaml").read_text()))


def test_in_a_clone_the_lock_file_says_what_is_installed() -> None:
    wanted = requirements(ROOT, ())
    lock = str(ROOT / "requirements-notebook.lock")
    assert wanted.arguments == ("--no-deps", "--require-hashes", "-r", lock)
    assert (wanted.packages or 0) > 50


def test_elsewhere_the_extra_of_the_package_does(tmp_path: Path) -> None:
    declared = ("numpy>=2", 'jupyterlab<5,>=4.4; extra == "notebook"', "x; extra == 'local'")
    for clone in (None, tmp_path):
        assert requirements(clone, declared).arguments == ("jupyterlab<5,>=4.4",)


def test_the_package_has_the_extra() -> None:
    names = {each.split("<")[0].split(">")[0] for each in _declared().arguments}
    assert names == {"jupyterlab", "ipykernel"}


def _declared() -> notebook.Wanted:
    return requirements(None, importlib.metadata.requires("gpupool") or ())


def test_both_lock_files_agree() -> None:
    """They are installed into one environment."""
    first, second = (
        dict(_versions((ROOT / name).read_text(encoding="utf-8").splitlines()))
        for name in ("requirements.lock", "requirements-notebook.lock")
    )
    assert "jupyterlab" in second.keys() - first.keys()
    common = first.keys() & second.keys()
    assert common
    assert {name: first[name] for name in common} == {name: second[name] for name in common}


def _versions(lines: list[str]) -> list[tuple[str, str]]:
    pinned = [line.split()[0].split("==") for line in lines if "==" in line and line[0].isalpha()]
    return [(name, version) for name, version in pinned]


def test_only_pods_with_the_image_of_a_notebook_are_notebooks() -> None:
    assert [each["kind"] for each in notebooks(MANIFESTS)] == ["Deployment"]
    shared = yaml.safe_load_all((ROOT / "examples/shared-gpus.yaml").read_text())
    assert notebooks(shared) == []


def test_it_says_how_to_open_a_notebook() -> None:
    opening = how_to_open(notebooks(MANIFESTS)[0])
    assert opening.before == (Step("kubectl port-forward deployment/tf-notebook 8888"),)
    assert opening.words == "Then open http://localhost:8888 (password: mypassw0rd)."
    opening = how_to_open(notebooks(MANIFESTS)[0], ["http://127.96.0.1"])
    assert opening.before == ()
    assert opening.words == "Open http://127.96.0.1 (password: mypassw0rd)."


def _pod(manifest: dict[str, Any], name: str, node: str) -> dict[str, Any]:
    spec = manifest["spec"]["template"]["spec"]
    return {"kind": "Pod", "metadata": {"name": name}, "spec": {**spec, "nodeName": node}}


def test_it_says_which_password_holds_while_a_notebook_waits_for_one_of_its_name() -> None:
    (other,) = yaml.safe_load_all((ROOT / "examples/notebook.yaml").read_text())
    (wanted,) = notebooks(MANIFESTS)
    pods = [_pod(other, "tf-notebook-old-1", "node"), _pod(wanted, "tf-notebook-new-1", "")]
    assert old_words(wanted, pods) == [
        "Until then tf-notebook-old-1 runs on, of another Deployment tf-notebook "
        "(password: mypassw0rdv). Or end it (kubectl delete deployment tf-notebook), and run the "
        "example again."
    ]
    assert old_words(wanted, [_pod(wanted, "tf-notebook-new-2", "node"), pods[1]]) == []


def test_it_says_what_to_do_about_a_pod_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: "/bin/gpupool")
    assert waiting_steps("tf-0") == (
        Step("gpupool gpu pods", "who has the cards"),
        Step("gpupool explain tf-0", "why it waits"),
    )


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jupyter, "is_installed", lambda: False)


def pip_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    """A Python whose pip does this."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))


def test_nothing_is_installed_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jupyter, "is_installed", lambda: True)
    pip_is(monkeypatch, tmp_path, "touch $0.called")
    assert install_jupyter() is False
    assert not (tmp_path / "python.called").exists()


@pytest.mark.usefixtures("not_installed")
def test_a_failure_of_pip_is_shown_with_the_next_step(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pip_is(monkeypatch, tmp_path, "echo Collecting jupyterlab; echo ERROR: no network >&2; exit 1")
    assert install_jupyter() is False
    said = capsys.readouterr().err
    assert "Installing JupyterLab, once ..." in said
    assert "a page is served in its place" in said
    assert "ERROR: no network" in said
    assert "To try it by hand: pip install 'gpupool[notebook]'" in said


@pytest.mark.usefixtures("not_installed")
def test_every_package_is_counted_once_and_those_of_other_systems_never(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept: list[Progress] = []

    @contextmanager
    def remembered(title: str, total: int | None = None, **_: bool) -> Iterator[Progress]:
        kept.append(Progress(title, total))
        yield kept[0]

    lock = "a==1 ; sys_platform == 'win32'\nb==1\nc==1\n"
    (tmp_path / "requirements-notebook.lock").write_text(lock)
    monkeypatch.setattr(notebook, "_clone", lambda: tmp_path)
    monkeypatch.setattr(notebook, "progress", remembered)
    said = ("Ignoring a: markers", "Collecting b", "Collecting c", "Collecting b", LAST)
    pip_is(monkeypatch, tmp_path, "; ".join(f"echo '{line}'" for line in said))
    install_jupyter()
    assert (kept[0].done, kept[0].total) == (3, 3)  # two packages, and to write their files


def test_what_pip_installs_is_found_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pip_is(monkeypatch, tmp_path, 'touch "$0.installed"; echo "$*" > "$0.called"')
    monkeypatch.setattr(jupyter, "is_installed", (tmp_path / "python.installed").exists)
    assert install_jupyter() is True
    assert "--require-hashes -r" in (tmp_path / "python.called").read_text()
    assert "JupyterLab is installed." in capsys.readouterr().err
