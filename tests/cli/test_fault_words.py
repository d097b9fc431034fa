"""What `gpupool gpu fault` says of each fault."""

import re

import pytest
from click.testing import CliRunner

from gpupool.agent.xid_policy import load_policy
from gpupool.cli.fault_words import fault_words
from gpupool.cli.main import gpupool
from gpupool.hardware.simdriver_faults import FaultKind, parse_fault


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("xid=79", "the driver reports XID 79 (the card has fallen off the bus)"),
        ("xid=9999", "the driver reports XID 9999 (an error that is not in our list)"),
        ("lost", "it has fallen off the bus"),
        ("ecc=1", "1 more uncorrectable memory error"),
        ("ecc-corrected=2", "2 more corrected memory errors"),
        ("temperature=90", "it shows 90 °C"),
        ("temperature=0", "its temperature follows its load again"),
        ("memory=700", "processes outside Kubernetes use 700 MiB of its memory"),
        ("utilisation=30", "processes outside Kubernetes use 30 % of its compute"),
        ("fail=cuMemAlloc_v2:OUT_OF_MEMORY", "cuMemAlloc_v2 returns error 2"),
        (
            "fail=cuMemAlloc_v2:2:after=10:times=1",
            "cuMemAlloc_v2 returns error 2 after 10 good calls, 1 time",
        ),
        ("hang=nvmlDevice*", "nvmlDevice* does not return"),
        ("recover", "repaired"),
    ],
)
def test_a_fault_is_said_in_plain_words(fault: str, words: str) -> None:
    assert fault_words(parse_fault(fault), load_policy()) == words


def test_help_explains_every_fault_on_a_line_of_its_own() -> None:
    shown = CliRunner().invoke(gpupool, ["gpu", "fault", "--help"], terminal_width=80).output
    listed = re.findall(r"^    ([a-z-]+)(?:=\S+)?  +\S", shown, re.MULTILINE)
    assert listed == [str(kind) for kind in FaultKind]
