"""Figures as a file, with when and where they were measured."""

import datetime
import os
import platform
import sys
from pathlib import Path
from typing import Any

import orjson

RESULTS = Path(__file__).parent / "results"


def here_and_now() -> dict[str, Any]:
    return {
        "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {sys.version.split()[0]}",
        "load_before": os.getloadavg()[0],
    }


def save(figures: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{figures['at'].replace(':', '')}.json"
    path.write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2))
    print(f"\nwritten to bench/results/{path.name}")
