import pytest

from gpupool.hardware.simdriver_faults import Fault, FaultKind, NotAFault, parse_fault


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("xid=79", Fault(FaultKind.XID, 79)),
        ("lost", Fault(FaultKind.LOST)),
        ("ecc=1", Fault(FaultKind.ECC, 1)),
        ("ecc-corrected=12", Fault(FaultKind.ECC_CORRECTED, 12)),
        ("temperature=0", Fault(FaultKind.TEMPERATURE, 0)),
        ("memory=2048", Fault(FaultKind.OUTSIDE_MEMORY, 2048)),
        ("utilisation=100", Fault(FaultKind.OUTSIDE_UTILISATION, 100)),
        ("recover", Fault(FaultKind.RECOVER)),
    ],
)
def test_faults_are_parsed(text: str, fault: Fault) -> None:
    assert parse_fault(text) == fault


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("burn", "known are xid=N, lost, ecc=N"),
        ("", "known are"),
        ("xid", "wanted xid=N with N a whole number"),
        ("xid=", "wanted xid=N with N a whole number"),
        ("xid=-1", "wanted xid=N with N a whole number"),
        ("xid=²", "wanted xid=N with N a whole number"),
        ("xid=0", "N from 1 to 9999"),
        ("utilisation=101", "N from 0 to 100"),
        ("xid=99999999999999999999", "wanted xid=N"),
        ("lost=1", "takes no value"),
    ],
)
def test_a_text_that_is_no_fault_is_refused(text: str, words: str) -> None:
    with pytest.raises(NotAFault, match=words):
        parse_fault(text)
