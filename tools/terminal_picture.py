"""Makes docs/terminal.svg, the picture in the README, out of a real run.

Run: python -m tools.terminal_picture (needs kubectl on the PATH; not part of `make docs`).
"""

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
WIDTH = 104
FIRST = "gpupool up"
THEN = (
    "kubectl get nodes",
    "kubectl get nodepools",
    "kubectl create deployment web --image=nginx --replicas=3",
    "kubectl rollout status deployment web",
    "kubectl get pods",
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
    PICTURE.write_text(re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL))
    print(PICTURE)


def _run(command: str, environment: dict[str, str], home: str) -> Text:
    done = subprocess.run(
        ["bash", "-c", command], env=environment, capture_output=True, text=True, check=True
    )
    shown = done.stdout.replace(home, "~/.local/state/gpupool").rstrip()
    return Text.assemble(("$ ", "green"), (command, "bold"), f"\n{shown}" if shown else "", "\n")


if __name__ == "__main__":
    main()
