"""make conformance: both servers are started, the scripts said to them, the answers compared.

python -m tests.conformance.differential               all, and docs/conformance.md anew
python -m tests.conformance.differential NAME ...      only these scripts
"""

import argparse
import difflib
import sys
import tempfile
import time
from pathlib import Path

from testbed.build import BuildError
from testbed.find_kubectl import ensure_kubectl
from tests.conformance.differential.both import Answers, servers
from tests.conformance.differential.differences import DIFFERENCES
from tests.conformance.differential.script import Script, load_all
from tests.conformance.test_conformance_page import PAGE, page


def problems(script: Script, answers: list[Answers]) -> list[str]:
    """What is wrong with them, in words; nothing where they agree or differ as listed."""
    listed = DIFFERENCES.get(script.name, {})
    found = []
    for each in answers:
        if each.agree and each.step.line in listed:
            found.append(f"{script.name}: no longer different: $ {each.step.line}")
        elif not each.agree and each.step.line not in listed:
            found.append(f"{script.name}: $ {each.step.line}\n{_difference(each)}")
    return found


def _difference(answers: Answers) -> str:
    lines = difflib.unified_diff(
        answers.real.splitlines(),
        answers.ours.splitlines(),
        "kube-apiserver",
        "local cluster",
        lineterm="",
        n=2,
    )
    return "\n".join(f"    {line}" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the local cluster with Kubernetes.")
    parser.add_argument("scripts", nargs="*")
    wanted = parser.parse_args().scripts
    chosen = [script for script in load_all() if not wanted or script.name in wanted]
    try:
        found = _run(chosen)
    except BuildError as error:
        print(f"NOTHING WAS COMPARED: {error}", file=sys.stderr)
        return 2
    for each in found:
        print(each)
    count = sum(len(script.compared) for script in chosen)
    print(f"{count} commands of {len(chosen)} scripts compared; unexpected: {len(found)}")
    if not found and not wanted:
        PAGE.write_text(page())
    return 1 if found else 0


def _run(scripts: list[Script]) -> list[str]:
    kubectl = ensure_kubectl()
    if kubectl is None:
        raise BuildError("there is no kubectl, and no Go to build one with")
    found: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="gpupool-conformance-") as folder,
        servers(kubectl, Path(folder)) as both,
    ):
        for script in scripts:
            begun = time.monotonic()
            found += problems(script, both.compare(script))
            print(f"{script.name}: {time.monotonic() - begun:.0f} s", file=sys.stderr)
    return found


if __name__ == "__main__":
    sys.exit(main())
