"""The memory of a CUDA context is measured in a process that may say anything, or never end."""

import os
import signal
import subprocess
import time

import pytest

from gpupool.hardware import context_memory
from gpupool.hardware.context_memory import NotMeasured, measure_context_mib


def test_a_process_that_nothing_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that a broken card holds in the kernel."""
    immortal: list[int] = []
    monkeypatch.setattr(context_memory, "_MEASURE", "import time; time.sleep(600)")
    monkeypatch.setattr(context_memory, "_MEASURE_SECONDS", 0)
    monkeypatch.setattr(subprocess.Popen, "kill", lambda process: immortal.append(process.pid))
    began_s = time.monotonic()
    try:
        with pytest.raises(NotMeasured, match="did not answer"):
            measure_context_mib()
        assert time.monotonic() - began_s < 300
    finally:
        for pid in immortal:
            os.kill(pid, signal.SIGKILL)


def test_what_a_library_prints_before_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context_memory, "_MEASURE", "print('hello'); print(312)")
    assert measure_context_mib() == 312


@pytest.mark.parametrize("said", ["", "-1", "4097", "1e3", "9" * 5000])
def test_what_is_no_amount_is_not_taken_for_one(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context_memory, "_MEASURE", f"print({said!r})")
    with pytest.raises(NotMeasured, match="which no context takes"):
        measure_context_mib()
