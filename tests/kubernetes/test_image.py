"""deploy/Dockerfile, followed step by step without a Docker daemon; fetches what pip needs."""

import re
from pathlib import Path

import pytest

from gpupool import __version__
from testbed.image_build import run_image

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parent.parent.parent
PROGRAMS = ("agent", "scheduler", "extender", "admission")


def printed(*commands: str) -> str:
    try:
        return run_image(ROOT / "deploy" / "Dockerfile", ROOT, commands)
    except RuntimeError as error:
        if "No matching distribution found" in str(error):
            pytest.skip("NO PACKAGE INDEX: pip finds nothing, and the Dockerfile was not followed")
        raise


def test_its_steps_make_an_image_whose_programs_start(able: None) -> None:
    said = printed(
        "gpupool --version",
        "id -u",
        *(f"gpupool {program} --help | head -1" for program in PROGRAMS),
        "python -c 'import kubernetes_asyncio'",
        "python -c 'from importlib.metadata import version; print(version(\"aiohttp\"))'",
        "ls /opt/gpupool/lib/python3*/site-packages/gpupool/_native/*/limiter",
        "test ! -e /opt/gpupool/bin/pip",
    )
    assert __version__ in said
    assert "\n65532\n" in said
    for program in PROGRAMS:
        assert f"Usage: gpupool {program}" in said
    assert "libgpupool" in said
    (locked,) = re.findall(r"(?m)^aiohttp==(\S+)", (ROOT / "requirements.lock").read_text())
    assert f"\n{locked}\n" in said
