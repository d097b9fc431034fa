"""Numbers of thousands of digits, which int() refuses with a ValueError, wherever a tenant writes
them: in a node affinity, in a query, in annotations, in ids of devices."""

import pytest

from kubeclient.placement import NodeOperator, NodeRequirement
from kubeclient.selectors import integer
from localkube.apiserver.defaults.server_fields import _generation
from localkube.apiserver.schema.formats import FORMATS
from localkube.apiserver.status import ApiError
from localkube.apiserver.subresources import port_forward
from localkube.apiserver.verbs.read import parse_version
from localkube.kubelet.devices.grants import _natural

NINES, ZEROS = "9" * 5000, "0" * 5000


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (NINES, None),
        (f"-{NINES}", None),
        (f"{ZEROS}7", 7),
        (f"-{ZEROS}7", -7),
        (str(2**63 - 1), 2**63 - 1),
        (str(2**63), None),
        (str(-(2**63)), -(2**63)),
        ("+0", 0),
    ],
)
def test_an_integer_is_one_of_64_bits(text: str, number: int | None) -> None:
    assert integer(text) == number


def test_a_node_affinity_with_a_long_number_fits_no_node() -> None:
    """It stopped the scheduler with a ValueError."""
    for operator in (NodeOperator.GREATER, NodeOperator.LESS):
        assert not NodeRequirement("k", operator, (NINES,)).matches({"k": "5"})
        assert not NodeRequirement("k", operator, ("5",)).matches({"k": NINES})


def test_versions_ports_and_options_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"strconv\.ParseUint"):
        parse_version(NINES)
    for text in (NINES, ZEROS):
        with pytest.raises(ApiError):
            port_forward._port(text)
    assert port_forward._port(f"{ZEROS}80") == 80


def test_annotations_formats_and_ids_of_devices_are_only_text() -> None:
    assert _generation(NINES) == 0
    assert not FORMATS["cidr"](f"1.2.3.4/{NINES}")
    assert sorted(["a10", f"a{NINES}", "a2"], key=_natural) == [f"a{NINES}", "a2", "a10"]
