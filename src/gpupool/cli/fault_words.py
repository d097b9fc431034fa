"""What `gpupool gpu fault` says of a fault that has happened. Pure."""

from collections.abc import Callable, Mapping

from gpupool.agent.xid_policy import XidPolicy
from gpupool.hardware.simdriver_faults import Fault, FaultKind


def fault_words(fault: Fault, policy: XidPolicy) -> str:
    """What a card has now; goes on after "Card 0 of node a: "."""
    if fault.kind is FaultKind.XID:
        return f"the driver reports XID {fault.value} ({policy.rule(fault.value).meaning})"
    return _WORDS[fault.kind](fault)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _calls(fault: Fault) -> str:
    after = f" after {_counted(fault.after, 'good call')}" if fault.after else ""
    return after + (f", {_counted(fault.times, 'time')}" if fault.times is not None else "")


def _temperature(fault: Fault) -> str:
    return f"it shows {fault.value} °C" if fault.value else "its temperature follows its load again"


_OTHERS = "processes outside Kubernetes use"
_WORDS: Mapping[FaultKind, Callable[[Fault], str]] = {
    FaultKind.LOST: lambda _: "it has fallen off the bus",
    FaultKind.ECC: lambda fault: _counted(fault.value, "more uncorrectable memory error"),
    FaultKind.ECC_CORRECTED: lambda fault: _counted(fault.value, "more corrected memory error"),
    FaultKind.TEMPERATURE: _temperature,
    FaultKind.OUTSIDE_MEMORY: lambda fault: f"{_OTHERS} {fault.value} MiB of its memory",
    FaultKind.OUTSIDE_UTILISATION: lambda fault: f"{_OTHERS} {fault.value} % of its compute",
    FaultKind.FAIL: lambda fault: f"{fault.call} returns error {fault.value}{_calls(fault)}",
    FaultKind.HANG: lambda fault: f"{fault.call} does not return{_calls(fault)}",
    FaultKind.RECOVER: lambda _: "repaired",
}
