"""What the console is told about this machine."""

from pathlib import Path

import pytest

from gpupool.cli.console_platform import platform
from gpupool.console.platform import Instances, OwnMachine
from gpupool.local.home import Home
from gpupool.local.machines import Machines


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("GPUPOOL_HOME", str(tmp_path))
    return Home(tmp_path)


def test_instances_and_what_is_wrong_with_them_are_one_answer(home: Home) -> None:
    """Of one moment: somebody may mend the file between two looks."""
    desk = platform("").desk
    assert desk is not None
    assert desk.known() == Instances()
    Machines(home).add("ecs.g6.large", ["m1"])
    assert desk.known() == Instances((OwnMachine("m1", "ecs.g6.large"),))
    (home.root / "machines.json").write_text("{")
    damaged = desk.known()
    assert damaged.found == ()
    assert "machines.json is damaged" in damaged.problem
