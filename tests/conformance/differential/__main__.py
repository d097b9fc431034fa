"""make conformance: both servers are started, the scripts said to them, the answers compared.

python -m tests.conformance.differential               all, and docs/conformance.md anew
python -m tests.conformance.differential NAME ...      only these scripts
"""

import argparse
import difflib
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from testbed.build import BuildError
from testbed.find_kubectl import ensure_kubectl
from tests.conformance.differential.both import Answers, servers
from tests.conformance.differential.catalogue import Work, everything, expected_of
from tests.conformance.test_conformance_page import PAGE, page


def problems(answers: Sequence[Answers], listed: Collection[str]) -> list[str]:
    """What is wrong with them, in words; nothing where they agree or differ as listed."""
    found = []
    for each in answers:
        if each.agree and each.step in listed:
            found.append(f"no longer different: $ {each.step}")
        elif not each.agree and each.step not in listed:
            found.append(f"$ {each.step}\n{_difference(each)}")
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
    known = {work.name: work for work in everything()}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    chosen = [known[name] for name in wanted or known]
    try:
        found = _run(chosen)
    except BuildError as error:
        print(f"NOTHING WAS COMPARED: {error}", file=sys.stderr)
        return 2
    count = sum(len(work.compared) for work in chosen)
    print(f"{count} steps of {len(chosen)} scripts compared; unexpected: {len(found)}")
    if not found and not wanted:
        PAGE.write_text(page())
    return 1 if found else 0


def _run(chosen: list[Work]) -> list[str]:
    kubectl = ensure_kubectl()
    if kubectl is None:
        raise BuildError("there is no kubectl, and no Go to build one with")
    found: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="gpupool-conformance-") as folder,
        servers(kubectl, Path(folder)) as both,
    ):
        for work in chosen:
            begun = time.monotonic()
            new = problems(both.compare(work), expected_of(work))
            for each in new:
                print(f"{work.name}: {each}")
            print(f"{work.name}: {time.monotonic() - begun:.0f} s", flush=True)
            found += new
    return found


if __name__ == "__main__":
    sys.exit(main())
