import pytest

from gpupool.hardware.simdriver_faults import Fault, FaultKind, NotAFault, parse_fault, variable


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
        ("fail=cuMemAlloc_v2:2", Fault(FaultKind.FAIL, 2, "cuMemAlloc_v2")),
        ("fail=nvml*:TIMEOUT", Fault(FaultKind.FAIL, 10, "nvml*")),
        ("fail=nvmlInit:NVML_ERROR_IN_USE", Fault(FaultKind.FAIL, 19, "nvmlInit")),
        ("fail=cuInit:999:after=3:times=1", Fault(FaultKind.FAIL, 999, "cuInit", 3, 1)),
        ("hang=cuInit:times=2", Fault(FaultKind.HANG, 0, "cuInit", 0, 2)),
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
        ("xid=99999999999999999999", "N from 1 to 9999"),
        ("lost=1", "takes no value"),
        ("fail", "wanted a function like"),
        ("fail=memory:2", "wanted a function like"),
        (f"hang=cu{'x' * 60}", "wanted a function like"),
        ("fail=cuInit", "wanted an error like INVALID_VALUE, or its number"),
        ("fail=cuInit:0", "wanted an error like INVALID_VALUE"),
        ("fail=cuInit:GPU_IS_LOST", "wanted an error like INVALID_VALUE"),
        ("fail=nvmlInit:LOST", "wanted an error like UNINITIALIZED"),
        ("hang=cuInit:times", "wanted after=N or times=N"),
        ("hang=cuInit:often=1", "wanted after=N or times=N"),
    ],
)
def test_a_text_that_is_no_fault_is_refused(text: str, words: str) -> None:
    with pytest.raises(NotAFault, match=words):
        parse_fault(text)


def test_faults_of_calls_are_written_as_a_variable() -> None:
    texts = ("fail=cuMemAlloc*:OUT_OF_MEMORY:after=3:times=1", "hang=nvmlInit")
    faults = [parse_fault(text) for text in texts]
    assert variable(faults) == "cuMemAlloc*=2,after=3,times=1;nvmlInit=hang"
    assert variable(faults[1:], card=1) == "nvmlInit=hang,card=1"
