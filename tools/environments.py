"""Empty environments with nothing in them but a wheel and what its metadata asks for.

The dependencies come from the environment that runs the tests, by links, so that no network is
needed; which of them, the metadata says: a dependency that is not declared is not there.
"""

import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
_PROJECTS = ("src/kubeclient", "src/localkube", ".")


def build_wheels(target: Path, root: Path = ROOT) -> dict[str, Path]:
    """The wheels of the checkout at `root`, by name of the distribution."""
    for project in _PROJECTS:
        if not (root / project / "pyproject.toml").exists():
            continue  # a checkout from before the three packages
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
        command += ["--no-build-isolation", "--disable-pip-version-check"]
        subprocess.run([*command, "--wheel-dir", str(target), str(root / project)], check=True)
    return {path.name.split("-")[0]: path for path in target.glob("*.whl")}


@dataclass(frozen=True, slots=True)
class Environment:
    path: Path
    distributions: frozenset[str]

    @property
    def megabytes(self) -> float:
        """What is in it, as a container image would have it."""
        packages = next((self.path / "lib").glob("python*/site-packages"))
        files = subprocess.run(
            [
                "du",
                "--summarize",
                "--bytes",
                "--dereference",
                "--exclude=__pycache__",
                str(packages),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        return int(files.stdout.split()[0]) / 1e6

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """One of its programs, with no other Python in sight."""
        return subprocess.run(
            [str(self.path / "bin" / command[0]), *command[1:]],
            env={"PATH": f"{self.path}/bin:{os.environ['PATH']}", **variables},
            cwd=self.path,
            capture_output=True,
            text=True,
            check=False,
        )


def environment(path: Path, wheels: dict[str, Path], wanted: str) -> Environment:
    """`wanted` as pip takes it: "gpupool[local]"."""
    venv.create(path, symlinks=True)
    packages = next((path / "lib").glob("python*/site-packages"))
    ours, others = _closure(Requirement(wanted), wheels, packages)
    for found in others:
        _link(found, packages)
    return Environment(path, frozenset({*ours, *(_normal(each.name) for each in others)}))


def _closure(
    wanted: Requirement, wheels: dict[str, Path], packages: Path
) -> tuple[set[str], list[Distribution]]:
    """Installs those that are wheels of ours; the distributions that come from elsewhere."""
    ours: set[str] = set()
    others: dict[str, Distribution] = {}
    done: set[tuple[str, str]] = set()
    todo = [wanted]
    while todo:
        requirement = todo.pop()
        name = _normal(requirement.name)
        if name in wheels and name not in ours:
            ours.add(name)
            _install(wheels[name], packages)
        found = _find(name, packages if name in ours else None)
        if found is None:
            continue  # not for this platform
        if name not in ours:
            others[name] = found
        for extra in ("", *requirement.extras):
            if (name, extra) not in done:
                done.add((name, extra))
                todo += _needed(found, extra)
    return ours, list(others.values())


def _install(wheel: Path, packages: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--disable-pip-version-check", "--prefix", str(packages.parents[2]), str(wheel)]
    subprocess.run([*command, "--ignore-installed"], check=True)
    for script in (packages.parents[2] / "bin").iterdir():
        _use_its_own_python(script)


def _use_its_own_python(script: Path) -> None:
    if script.is_symlink():
        return
    text = script.read_text(encoding="utf-8", errors="replace")
    if text.startswith(f"#!{sys.executable}"):
        rest = text.partition("\n")[2]
        script.write_text(f"#!{script.parent / 'python'}\n{rest}", encoding="utf-8")


def _find(name: str, packages: Path | None) -> Distribution | None:
    try:
        if packages is not None:
            return next(iter(Distribution.discover(name=name, path=[str(packages)])))
        return distribution(name)
    except (PackageNotFoundError, StopIteration):
        return None


def _needed(found: Distribution, extra: str) -> Iterator[Requirement]:
    for line in found.requires or ():
        requirement = Requirement(line)
        if requirement.marker is None:
            if not extra:
                yield requirement
        elif requirement.marker.evaluate({"extra": extra}):
            yield requirement


def _link(found: Distribution, packages: Path) -> None:
    """Links to the top-level entries of a distribution, where this environment has them."""
    for top in {file.parts[0] for file in found.files or () if file.parts[0] != ".."}:
        source = Path(str(found.locate_file(top)))
        if source.exists() and not (packages / top).exists() and top != "__pycache__":
            (packages / top).symlink_to(source)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
