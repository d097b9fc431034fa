"""The README and the five documents from end to end, as a user types and clicks them.

One test, because a user has one machine and goes from one step to the next: what a step leaves
behind, the next one meets. `tests/walk/terminal.py` shows all that was typed before a step that
fails. Where a document clicks through a web console that is not there yet, a comment that begins
"Open until a web console has it" says so, and the step is typed.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.local.programs import jupyter
from testbed.find_kubectl import ensure_kubectl
from tests.browser.chromium import find_chromium
from tests.walk import alpha_api, node_labels, notebook, readme, shared_gpus
from tests.walk.browsing import Browser
from tests.walk.terminal import Terminal, new_terminal

ROOT = Path(__file__).parent.parent.parent

pytestmark = [pytest.mark.kubectl, pytest.mark.timeout(600)]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    kubectl = ensure_kubectl()
    if kubectl is None:
        pytest.skip("NO KUBECTL: README and documents were not walked. Set KUBECTL=path")
    made = new_terminal(ROOT, tmp_path, [Path(sys.executable).parent, kubectl.parent])
    yield made
    for cluster in (tmp_path / "gpupool" / "clusters").glob("*"):
        made.types(f"gpupool down --name {cluster.name}")


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    return Browser(find_chromium() or "", jupyter.is_installed(), tmp_path)


def test_readme_and_documents_can_be_walked_from_end_to_end(
    terminal: Terminal, browser: Browser
) -> None:
    readme.walk(terminal, browser)

    terminal.types("gpupool reset --yes --name default")
    shown = terminal.types("gpupool up", "8 of 8 nodes are ready")
    terminal.types(next(line for line in shown.splitlines() if "export KUBECONFIG=" in line))
    node_labels.walk(terminal)
    shared_gpus.walk(terminal)
    terminal.types("gpupool down")

    notebook.walk(terminal, browser)
    alpha_api.walk(terminal)

    if browser.left_out:
        pytest.skip("ALL BUT THIS WAS WALKED: " + "; ".join(browser.left_out))
