"""Makes docs/terminal.svg, the picture in the README, out of a real run.

Run: python -m tools.terminal_picture (needs kubectl on the PATH; not part of `make docs`).
"""

import html
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURE = Path(__file__).parent.parent / "docs" / "terminal.svg"
WIDTH = 156
FIRST = "gpupool up"
THEN = (
    "kubectl get nodes -L aliyun.accelerator/nvidia_name,aliyun.accelerator/nvidia_mem,cgpu",
    "gpupool example shared-gpus",
    "kubectl exec cgpu-test-0 -- nvidia-smi",
    "kubectl exec cgpu-test-no-isolation-0 -- "
    "nvidia-smi --query-gpu=name,memory.total --format=csv",
)
_INDENTED = re.compile(
    r'x="(?P<x>[\d.]+)"(?P<y> y="[\d.]+" )textLength="(?P<length>[\d.]+)"(?P<more>[^>]*)>'
    r"(?P<spaces>(?:&#160;)+)(?P<rest>[^<\s][^<]*)</text>"
)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="gpupool-") as home:
        environment = os.environ | {
            "GPUPOOL_HOME": home,
            "KUBECONFIG": f"{home}/clusters/default/kubeconfig",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        try:
            pages = [_run(FIRST, environment, home)]
            _run("kubectl wait --for=condition=Ready node --all", environment, home)
            pages += [_run(command, environment, home) for command in THEN]
        finally:
            _run("gpupool down", environment, home)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for page in pages:
        console.print(page)
    picture = console.export_svg(title="gpupool", theme=MONOKAI)
    # Fonts from somewhere else are not fetched in a README, and need not be.
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    PICTURE.write_text(_INDENTED.sub(_moved_right, picture))
    print(PICTURE)


def _moved_right(text: re.Match[str]) -> str:
    """Some viewers drop the spaces that a text begins with: it is put further right instead."""
    spaces = text["spaces"].count("&")
    letter = float(text["length"]) / len(html.unescape(text["spaces"] + text["rest"]))
    x, length = (
        f"{value:g}"
        for value in (
            float(text["x"]) + spaces * letter,
            float(text["length"]) - spaces * letter,
        )
    )
    return f'x="{x}"{text["y"]}textLength="{length}"{text["more"]}>{text["rest"]}</text>'


def _run(command: str, environment: dict[str, str], home: str) -> Text:
    done = subprocess.run(
        ["bash", "-c", command], env=environment, capture_output=True, text=True, check=True
    )
    shown = done.stdout.replace(home, "~/.local/state/gpupool").rstrip()
    return Text.assemble(("$ ", "green"), (command, "bold"), f"\n{shown}" if shown else "", "\n")


if __name__ == "__main__":
    main()
