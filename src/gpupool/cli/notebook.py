"""JupyterLab for the notebooks of local clusters: installs it once, and says how to open one.

In a clone, the lock file says what is installed, with digests; elsewhere, the extra `notebook` of
the installed package does. It goes into the Python environment of gpupool, which containers see.
"""

import importlib
import importlib.metadata
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

import gpupool
from gpupool.cli.next_steps import Step
from gpupool.cli.progress import Progress, progress

if TYPE_CHECKING:
    from kubeclient.objects import Obj

_LOCK = "requirements-notebook.lock"
_BY_HAND = "pip install 'gpupool[notebook]'"
# What pip prints for each package that it looks at.
_LOOKED_AT = re.compile(r"(?:Collecting|Requirement already satisfied:) ([\w.-]+)")
_NOT_FOR_US = "Ignoring "  # a package of the lock file that is for another system
_LAST_STEP = "Installing collected packages"
_SHOWN_LINES = 3  # of what pip says when it fails


def install_jupyter() -> bool:
    """Whether something was installed. If it cannot be, says why: a page is served in its place."""
    from gpupool.local.programs import jupyter

    if jupyter.is_installed():
        return False
    wanted = requirements(_clone(), importlib.metadata.requires("gpupool") or ())
    if importlib.util.find_spec("pip") is None:
        _complain(f"this Python has no pip. With another installer: {_BY_HAND}")
        return False
    pip = (sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input")
    try:
        with progress("Installing JupyterLab, once", wanted.steps, at_once=True) as shown:
            said = _run((*pip, *wanted.arguments), shown)
    except subprocess.CalledProcessError as error:
        _complain(f"{error.output}\nTo try it by hand: {_BY_HAND}")
        return False
    importlib.invalidate_caches()
    click.echo(said[-1] if not jupyter.is_installed() else "JupyterLab is installed.", err=True)
    return jupyter.is_installed()


class Wanted(NamedTuple):
    arguments: tuple[str, ...]  # of pip install
    packages: int | None  # how many, where it is known before

    @property
    def steps(self) -> int | None:
        """One more than packages: to write their files, of which pip says little."""
        return self.packages + 1 if self.packages else None


def requirements(clone: Path | None, declared: Iterable[str]) -> Wanted:
    """`declared`: the requirements of the installed package."""
    lock = clone / _LOCK if clone else None
    if lock and lock.exists():
        names = re.findall(r"^[\w.-]+==", lock.read_text(encoding="utf-8"), re.MULTILINE)
        return Wanted(("--no-deps", "--require-hashes", "-r", str(lock)), len(names))
    extra = [each for each in declared if re.search(r"extra == ['\"]notebook['\"]", each)]
    return Wanted(tuple(each.partition(";")[0].strip() for each in extra), None)


def notebooks(manifests: Iterable["Obj"]) -> list["Obj"]:
    """Those of the manifests whose pods are notebooks."""
    return [manifest for manifest in manifests if _container(manifest)]


class Opening(NamedTuple):
    """How to open a notebook."""

    link: str
    password: str  # of the manifest
    before: tuple[Step, ...] = ()  # has to run first

    @property
    def words(self) -> str:
        then = "Then open" if self.before else "Open"
        return f"{then} {self.link} (password: {self.password})."


def how_to_open(notebook: "Obj", links: Sequence[str] = ()) -> Opening:
    """By the link of its service, else through a port that is forwarded."""
    password = _password(notebook)
    if links:
        return Opening(links[0], password)
    what = f"{notebook['kind'].lower()}/{notebook['metadata']['name']}"
    forward = Step(f"kubectl port-forward {what} 8888")
    return Opening("http://localhost:8888", password, (forward,))


def old_words(notebook: "Obj", pods: Iterable["Obj"]) -> list[str]:
    """Of pods that run on while the notebook's own one waits: they have the password of before.
    `pods`: of the notebook."""
    kind, name = notebook["kind"], notebook["metadata"]["name"]
    old = [pod for pod in notebooks(pods) if _password(pod) != _password(notebook)]
    return [
        f"Until then {pod['metadata']['name']} runs on, of another {kind} {name} "
        f"(password: {_password(pod)}). Or end it (kubectl delete {kind.lower()} {name}), and run "
        "the example again."
        for pod in old
        if pod["spec"].get("nodeName")
    ]


def _password(notebook: "Obj") -> str:
    container = _container(notebook) or {}
    env = {each["name"]: each.get("value", "") for each in container.get("env") or ()}
    return str(env.get("PASSWORD", ""))


def _container(manifest: "Obj") -> "Obj | None":
    from gpupool.local.images import is_notebook

    spec = manifest.get("spec") or {}
    template = (spec.get("template") or {}).get("spec") or spec
    found: Iterator[Obj] = iter(template.get("containers") or ())
    return next((each for each in found if is_notebook(each.get("image", ""))), None)


def _clone() -> Path | None:
    """The repository that gpupool runs from, if it does."""
    root = Path(gpupool.__file__).resolve().parent.parent.parent
    return root if (root / "pyproject.toml").exists() else None


def _run(command: Sequence[str], shown: Progress) -> list[str]:
    """The lines that it prints. Raises CalledProcessError with the last of them."""
    said: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        seen: set[str] = set()
        for line in process.stdout:
            said.append(line.rstrip())
            found = _LOOKED_AT.match(line)
            if line.startswith(_NOT_FOR_US) and shown.total:
                shown.total -= 1
            elif found and found[1] not in seen:  # pip names a package again for its dependents
                seen.add(found[1])
                shown.advance()
                shown.say(found[1])
            elif line.startswith(_LAST_STEP):
                shown.advance()
                shown.say("writing files")
    if process.returncode:
        last = "\n".join([line for line in said if line][-_SHOWN_LINES:])
        raise subprocess.CalledProcessError(process.returncode, command, last)
    return said or [""]


def _complain(why: str) -> None:
    click.echo(f"JupyterLab is not installed, so a page is served in its place: {why}", err=True)
