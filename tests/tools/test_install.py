"""The progress of an installation, from what pip prints."""

import re
from pathlib import Path

from packaging.markers import Marker

from tools.install import Step, locked, steps

ROOT = Path(__file__).resolve().parents[2]


PIP_SAYS = [
    "Ignoring colorama: markers 'sys_platform == \"win32\"' don't match your environment\n",
    "Collecting aiohttp==3.14 (from -r requirements.lock (line 1))\n",
    "  Downloading aiohttp-3.14-cp311.whl (1.7 MB)\n",
    "Requirement already satisfied: pip in ./lib (from x)\n",
    "Collecting aiohttp\n",
    "Installing collected packages: aiohttp\n",
]


def test_every_package_is_counted_once_and_those_of_other_systems_never() -> None:
    assert list(steps(PIP_SAYS, 3)) == [
        Step(1, 2, "aiohttp"),
        Step(2, 2, "pip"),
        Step(2, 2, "writing the files"),
    ]


def test_the_readme_says_how_many_packages_the_first_run_installs() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    [said] = re.findall(r"installs (\d+) Python packages", (ROOT / "README.md").read_text())
    for python in ("3.11.2", "3.12.0", "3.14.1"):
        linux = {
            "sys_platform": "linux",
            "python_full_version": python,
            "platform_python_implementation": "CPython",
            "implementation_name": "cpython",
        }
        markers = re.findall(r"^[\w.-]+==[^ ;]+(?: ; ([^\\]+))?", lock, re.MULTILINE)
        assert len(markers) == locked(lock)
        wanted = [each for each in markers if not each or Marker(each.strip()).evaluate(linux)]
        assert len(wanted) == int(said)


def test_what_runs_is_a_part_of_what_tests_need() -> None:
    run, test = (
        {line.split(" ")[0] for line in (ROOT / name).read_text().splitlines() if "==" in line}
        for name in ("requirements.lock", "requirements-dev.lock")
    )
    assert run <= test
    assert locked((ROOT / "requirements.lock").read_text()) == len(run)
