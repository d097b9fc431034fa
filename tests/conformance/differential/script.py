"""Scripts: what is said to both servers, as text files in scripts/.

    ## A comment.
    $ kubectl apply -f -
    apiVersion: v1
    ...

A line that starts with `$` is a step; the lines below it are its standard input. Before `kubectl`
may stand variables (`KUBE_EDITOR='sed -i s/a/b/' kubectl edit ...`). Other steps than kubectl:

    $ until TEXT kubectl ...   again and again, until both outputs together contain TEXT
    $ start TEXT kubectl ...   goes on, once it has printed TEXT, while the next steps are done
    $ ends TEXT                once the started one has printed TEXT, it is stopped and compared
    $ file NAME                a file for the steps that follow

$NAMESPACE is the script's namespace, which is made before its first step.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "scripts"
_VARIABLE = re.compile(r"[A-Z_]+=")


@dataclass(frozen=True, slots=True)
class Step:
    line: str  # as written, which is also its name
    verb: str  # kubectl, start, ends, file
    arguments: tuple[str, ...]
    stdin: str = ""
    env: tuple[tuple[str, str], ...] = ()
    until: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    name: str
    steps: tuple[Step, ...]

    @property
    def compared(self) -> tuple[str, ...]:
        """The names of the steps whose answers are compared."""
        return tuple(step.line for step in self.steps if step.verb in ("kubectl", "ends"))


class BadScript(ValueError):
    """A script is wrong; the text says where."""


def namespace_of(name: str) -> str:
    return f"c-{name}"


def load_all() -> list[Script]:
    return [parse(path.stem, path.read_text()) for path in sorted(FOLDER.glob("*.txt"))]


def parse(name: str, text: str) -> Script:
    text = text.replace("$NAMESPACE", namespace_of(name))
    steps: list[Step] = []
    line, body = "", list[str]()
    for each in [*text.splitlines(), "$"]:
        if each.startswith("##"):
            continue
        if not each.startswith("$"):
            body.append(each)
            continue
        if line:
            steps.append(_step(line, "\n".join(body).strip("\n")))
        elif any(body):
            raise BadScript(f"{name}: the first step starts with `$`, found {body[0]!r}")
        line, body = each[1:].strip(), []
    _check_names(name, steps)
    return Script(name, tuple(steps))


def _check_names(script: str, steps: Sequence[Step]) -> None:
    lines = [step.line for step in steps if step.verb != "file"]
    twice = sorted({line for line in lines if lines.count(line) > 1})
    if twice:
        raise BadScript(f"{script}: steps are named by their line, and it is there twice: {twice}")


def _step(line: str, body: str) -> Step:
    words = shlex.split(line)
    env = []
    while words and _VARIABLE.match(words[0]):
        key, _, value = words.pop(0).partition("=")
        env.append((key, value))
    until = ""
    verb, *rest = words
    if verb in ("until", "start"):
        until, kubectl, *rest = rest
        verb = verb if verb == "start" else kubectl
    stdin = f"{body}\n" if body else ""
    if verb not in ("kubectl", "start", "ends", "file"):
        raise BadScript(f"wanted kubectl, until, start, ends or file, found {verb!r}")
    return Step(line, verb, tuple(rest), stdin, tuple(env), until)
