"""The progress of an installation, from what pip prints."""

from pathlib import Path

from tools.install import locked, steps

ROOT = Path(__file__).resolve().parents[2]


def test_every_package_is_counted_once() -> None:
    lines = [
        "Collecting aiohttp==3.14 (from -r requirements.lock (line 1))\n",
        "  Downloading aiohttp-3.14-cp311.whl (1.7 MB)\n",
        "Requirement already satisfied: pip in ./lib (from x)\n",
        "Collecting aiohttp\n",
        "Installing collected packages: aiohttp\n",
    ]
    assert list(steps(lines)) == [(1, "aiohttp"), (2, "pip"), (2, "writing the files")]


def test_what_runs_is_a_part_of_what_tests_need() -> None:
    run, test = (
        {line.split(" ")[0] for line in (ROOT / name).read_text().splitlines() if "==" in line}
        for name in ("requirements.lock", "requirements-dev.lock")
    )
    assert run <= test
    assert locked((ROOT / "requirements.lock").read_text()) == len(run)
