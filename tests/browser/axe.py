"""axe-core, which finds what people with a screen reader or weak eyes cannot use.

Its licence is the MPL, and it is not part of this repository: the npm client brings one version of
it, whose checksum stands here, into the environment. `make browser` does that; so does the first
test that needs it.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from tests.browser.chromium import Page

_VERSION = "4.14.0"
_SHA256 = "2277b0a3ef47af9b52497faa3e71598e86e0a0e5e6eb295207a5657ede4709af"
_PLACE = Path(sys.prefix) / "share" / f"axe-core-{_VERSION}.js"
_LIMIT_S = 60
_MEMBER = "package/axe.min.js"
GRAVE = ("serious", "critical")


class NoAxe(Exception):
    """It cannot be had on this machine; the text says why."""


def axe_source() -> str:
    """The script. Raises NoAxe."""
    if not _PLACE.exists():
        _PLACE.parent.mkdir(parents=True, exist_ok=True)
        part = _PLACE.with_suffix(f".{os.getpid()}")
        part.write_bytes(_fetched())
        part.replace(_PLACE)
    return _PLACE.read_text(encoding="utf-8")


def _fetched() -> bytes:
    npm = shutil.which("npm")
    if npm is None:
        raise NoAxe("there is no npm")
    with tempfile.TemporaryDirectory() as folder:
        command = (npm, "pack", f"axe-core@{_VERSION}", "--pack-destination", folder)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S)
        except subprocess.TimeoutExpired as late:
            raise NoAxe(f"npm has not answered within {_LIMIT_S} s") from late
        if done.returncode:
            raise NoAxe(f"npm: {done.stderr.strip()[-500:]}")
        (archive,) = Path(folder).glob("*.tgz")
        found = hashlib.sha256(archive.read_bytes()).hexdigest()
        if found != _SHA256:
            raise NoAxe(f"axe-core {_VERSION}: wanted the checksum {_SHA256}, found {found}")
        with tarfile.open(archive) as opened:
            member = opened.extractfile(_MEMBER)
            assert member is not None
            return member.read()


async def grave_findings(page: Page) -> list[str]:
    """What is serious or critical on the page, each with the first element that it is about. The
    script has run there."""
    options = json.dumps({"resultTypes": ["violations"]})
    found: list[dict[str, Any]] = await page.run(
        f"axe.run(document, {options}).then((all) => all.violations.map(({{id, impact, nodes}}) =>"
        " ({id, impact, count: nodes.length, html: nodes[0].html.slice(0, 200),"
        " why: nodes[0].failureSummary})))"
    )
    return [
        f"{each['id']} ({each['impact']}, {each['count']} times): {each['html']}\n{each['why']}"
        for each in found
        if each["impact"] in GRAVE
    ]


if __name__ == "__main__":
    try:
        axe_source()
    except NoAxe as why:
        sys.exit(f"WITHOUT AXE-CORE: {why}")
