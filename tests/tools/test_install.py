"""The progress of an installation, from what pip prints."""

import hashlib
import os
import re
import subprocess
import sys
import zipfile
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


def wheel(directory: Path, name: str, version: str, *more: str) -> str:
    """Makes an empty package; `more` are lines of its metadata. Returns its line in a lock file."""
    info = f"{name}-{version}.dist-info"
    lines = ("Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *more)
    file = directory / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as made:
        made.writestr(f"{info}/METADATA", "\n".join(lines) + "\n")
        made.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        made.writestr(f"{info}/RECORD", "")
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}\n"


def test_a_newer_version_of_a_package_changes_nothing_also_where_its_extra_is_wanted(
    tmp_path: Path,
) -> None:
    wants = wheel(tmp_path, "wants", "1.0", "Requires-Dist: given[more]>=1")
    given = wheel(tmp_path, "given", "1.0", "Provides-Extra: more")
    wheel(tmp_path, "given", "2.0", "Provides-Extra: more")
    lock, target = tmp_path / "some.lock", tmp_path / "target"
    lock.write_text(wants + given)
    ours = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_TARGET": str(target)}
    installed = subprocess.run(
        [sys.executable, ROOT / "tools/install.py", lock],
        env=os.environ | ours,
        capture_output=True,
        text=True,
        check=False,
    )
    assert installed.returncode == 0, installed.stderr
    assert {each.name for each in target.iterdir()} >= {
        "wants-1.0.dist-info",
        "given-1.0.dist-info",
    }
