"""Faults that are injected while programs run."""

import subprocess
import sys

import pytest

from gpupool.hardware.simdriver import NodeFiles, inject, read_cards
from gpupool.hardware.simdriver_faults import parse_fault
from gpupool.hardware.simdriver_state import NoSuchCard
from tests.native.simulated import environment, holding, python, run

WAITER = """
import pynvml as n
n.nvmlInit()
events = n.nvmlEventSetCreate()
for index in range(n.nvmlDeviceGetCount()):
    card = n.nvmlDeviceGetHandleByIndex(index)
    n.nvmlDeviceRegisterEvents(card, n.nvmlEventTypeXidCriticalError, events)
print("waiting", flush=True)
for _ in range(2):
    event = n.nvmlEventSetWait_v2(events, 20000)
    try:
        where = n.nvmlDeviceGetIndex(event.device)
    except n.NVMLError_GpuIsLost:
        where = "lost"
    print(event.eventData, where, flush=True)
"""


def errors(node: NodeFiles) -> str:
    field = "ecc.errors.uncorrected.volatile.total"
    return run(node, "nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader").stdout


def test_a_waiting_client_gets_the_event_with_its_xid_and_card(node: NodeFiles) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAITER], stdout=subprocess.PIPE, text=True, env=environment(node)
    ) as waiter:
        assert waiter.stdout is not None
        assert waiter.stdout.readline() == "waiting\n"
        inject(node, 1, parse_fault("xid=31"))
        assert waiter.stdout.readline() == "31 1\n"
        inject(node, 0, parse_fault("xid=79"))
        assert waiter.stdout.readline() == "79 lost\n"
        assert waiter.wait(20) == 0


def test_a_client_gets_no_events_from_before_its_registration(node: NodeFiles) -> None:
    inject(node, 0, parse_fault("xid=31"))
    script = WAITER.replace("20000", "50").replace("range(2)", "range(1)")
    done = run(node, sys.executable, "-c", script)
    assert "NVMLError_Timeout" in done.stderr


def test_all_calls_about_a_lost_card_fail_until_it_recovers(node: NodeFiles) -> None:
    with holding(node, 0, 100):
        inject(node, 0, parse_fault("xid=79"))
        screen = run(node, "nvidia-smi", "-L")
        assert screen.returncode == 15
        assert "GPU is lost" in screen.stdout
        assert "GPU 1: Tesla V100" in screen.stdout  # the other card is shown
        card = read_cards(node)[0]
        assert (card.is_lost, card.last_xid) == (True, 79)
        inject(node, card.uuid, parse_fault("recover"))
        assert run(node, "nvidia-smi", "-L").returncode == 0
        assert not read_cards(node)[0].is_lost


def test_memory_errors_are_counted_and_make_contexts_fail(node: NodeFiles) -> None:
    inject(node, 0, parse_fault("ecc=2"))
    inject(node, 0, parse_fault("ecc-corrected=5"))
    assert errors(node) == "2\n0\n"
    script = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
context = ctypes.c_void_p()
print(*(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), card) for card in (0, 1)))
"""
    assert python(node, script) == "214 0\n"  # CUDA_ERROR_ECC_UNCORRECTABLE
    inject(node, 0, parse_fault("recover"))
    assert errors(node) == "0\n0\n"
    assert python(node, script) == "0 0\n"
    ever = run(
        node,
        "nvidia-smi",
        "--query-gpu=ecc.errors.uncorrected.aggregate.total",
        "--format=csv,noheader",
    )
    assert ever.stdout == "2\n0\n"


def test_injected_temperature_and_load_are_shown(node: NodeFiles) -> None:
    inject(node, 1, parse_fault("temperature=93"))
    inject(node, 1, parse_fault("utilisation=80"))
    query = "--query-gpu=temperature.gpu,utilization.gpu"
    done = run(node, "nvidia-smi", query, "--format=csv,noheader,nounits")
    assert done.stdout == "34, 0\n93, 80\n"


def test_a_fault_for_an_unknown_card_is_refused_with_a_message(node: NodeFiles) -> None:
    with pytest.raises(NoSuchCard, match="no card 2; wanted an index below 2 or one of GPU-"):
        inject(node, 2, parse_fault("lost"))
