"""Records fixtures from a real kube-apiserver.

    python3 -m tests.conformance.record.record               all of them
    python3 -m tests.conformance.record.record requests      only requests.json

Each file is recorded from a fresh server. Values that vary (uids, versions, times) are written
as they came; normalise.py makes answers comparable.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from testbed.controlplane import ControlPlane
from tests.conformance.record import defaults, discovery, enums, replay, tables
from tests.conformance.record.case import Json
from tests.conformance.record.cases import CASES
from tests.conformance.record.client import Client
from tests.conformance.record.layout import laid_out

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


def _requests(client: Client) -> Json:
    return [replay.run(case, client) for case in CASES]


RECORDERS: Mapping[str, Callable[[Client], Json]] = {
    "discovery": discovery.record,
    "enums": enums.record,
    "tables": tables.record,
    "defaults": defaults.record,
    "requests": _requests,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Record fixtures from a real kube-apiserver.")
    parser.add_argument("files", nargs="*", metavar="file", help=", ".join(RECORDERS))
    names = parser.parse_args().files or list(RECORDERS)
    unknown = [name for name in names if name not in RECORDERS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(RECORDERS)}")
    for name in names:
        with ControlPlane() as plane:
            recorded = RECORDERS[name](Client(plane.url, plane.token, plane.ca_file))
        target = FIXTURES / f"{name}.json"
        target.write_text(laid_out(recorded) + "\n")
        print(f"{target.name}: {len(recorded)} entries, {target.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
