"""Whatever programs of a container do with a card, in whatever order: the limiter has counted what
the simulated driver holds for them, gives no more than the limit, and refuses only what does not
fit."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from gpupool.hardware.simdriver import inject
from gpupool.hardware.simdriver_faults import parse_fault
from gpupool.hardware.simdriver_results import CUDA
from gpupool.hardware.simdriver_state import Driver
from tests.attack.campaign import campaign
from tests.native.isolation.idle import MIB, counted, held
from tests.native.isolation.limited import Container, line, make_container
from tests.native.simulated import make_node

CHILD = Path(__file__).with_name("random_child.py")
CONTEXT_MIB = 3
OUT_OF_MEMORY = 2
# The steps of random_child.py that take memory, and the function of the driver that does it.
TAKING = {
    "retain": "cuDevicePrimaryCtxRetain",
    "create context": "cuCtxCreate_v2",
    "new context": "cuCtxCreate_v4",
    "green": "cuGreenCtxCreate",
    "alloc": "cuMemAlloc_v2",
    "pitch": "cuMemAllocPitch_v2",
    "managed": "cuMemAllocManaged",
    "array": "cuArrayCreate_v2",
    "array 3d": "cuArray3DCreate_v2",
    "mipmap": "cuMipmappedArrayCreate",
    "import": "cuImportExternalMemory",
    "async": "cuMemAllocAsync",
    "pool alloc": "cuMemAllocFromPoolAsync",
    "physical": "cuMemCreate",
    "graph": "cuGraphAddMemAllocNode",
}
MAKING_CONTEXTS = ("retain", "create context", "new context", "green")
# All others.
CHANGING = {
    "release": "cuDevicePrimaryCtxRelease_v2",
    "destroy context": "cuCtxDestroy_v2",
    "end green": "cuGreenCtxDestroy",
    "use": "cuCtxSetCurrent",
    "free": "cuMemFree_v2",
    "free array": "cuArrayDestroy",
    "free mipmap": "cuMipmappedArrayDestroy",
    "end import": "cuDestroyExternalMemory",
    "stream": "cuStreamCreate",
    "end stream": "cuStreamDestroy_v2",
    "wait": "cuStreamSynchronize",
    "wait for all": "cuCtxSynchronize",
    "event": "cuEventCreate",
    "record": "cuEventRecord",
    "wait for event": "cuEventSynchronize",
    "free async": "cuMemFreeAsync",
    "free pooled": "cuMemFree_v2",
    "pool": "cuMemPoolCreate",
    "end pool": "cuMemPoolDestroy",
    "set pool": "cuDeviceSetMemPool",
    "keep": "cuMemPoolSetAttribute",
    "trim": "cuMemPoolTrimTo",
    "on host": "cuMemCreate",
    "end physical": "cuMemRelease",
    "map": "cuMemMap",
    "unmap": "cuMemUnmap",
    "handle": "cuMemRetainAllocationHandle",
    "launch": "cuGraphLaunch",
    "end graph": "cuGraphExecDestroy",
    "trim graphs": "cuDeviceGraphMemTrim",
    "kernel": "cuLaunchKernel",
}
# Steps that belong together. A program that does one kind of thing for a while comes to what
# single steps among all others rarely reach.
TOGETHER = {
    "mapping": (
        "physical",
        "on host",
        "map",
        "map",
        "unmap",
        "unmap",
        "unmap",
        "handle",
        "end physical",
    ),
    "graphs": ("graph", "launch", "launch", "end graph", "trim graphs", "release", "alloc"),
    "pools": ("pool", "pool alloc", "async", "free async", "free pooled", "wait", "end pool"),
    "contexts": (
        *("create context", "destroy context", "green", "end green", "release"),
        *("use", "alloc", "array", "launch"),
    ),
}
# What the limiter asks the driver by itself.
ASKED = (
    "cuMemPoolGetAttribute",
    "cuMemPoolTrimTo",
    "cuDeviceGetGraphMemAttribute",
    "cuDeviceGraphMemTrim",
    "cuThreadExchangeStreamCaptureMode",
    "cuDeviceGetMemPool",
)
NUMBERS = st.integers(0, 9)
# Few things are larger than a share, many do not fit beside others, some are not whole granules.
SIZES = st.one_of(
    st.integers(1, 70).map(lambda mib: mib * MIB),
    st.integers(1, 20).map(lambda mib: mib * MIB),
    st.integers(1, 5 * MIB),
)


class Program:
    def __init__(self, container: Container) -> None:
        self.external = 0
        self.process = subprocess.Popen(
            [sys.executable, "-I", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=container.variables(),
        )

    def does(self, step: str, a: int = 0, b: int = 0, size: int = 0) -> tuple[int, int]:
        """The result of the driver, and the bytes that were asked for."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([step, a, b, size]) + "\n")
        self.process.stdin.flush()
        result, wanted, self.external = json.loads(self.process.stdout.readline())
        return result, wanted

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self) -> None:
        """As programs do when they are done: without giving anything back."""
        self.process.communicate()
        assert self.process.returncode == 0


class Card(RuleBasedStateMachine):
    """Two programs work. A third one only looks, which also gives back what dead ones held."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        place = Path(self.directory.name)
        node = make_node(place / "node", driver=Driver(context_mib=CONTEXT_MIB))
        self.container = make_container(place, node, context_mib=CONTEXT_MIB)
        self.programs: list[Program] = []
        self.observers: list[Program] = []

    @initialize(mib=st.integers(20, 80))
    def start(self, mib: int) -> None:
        self.resize(mib)
        self.observers = [Program(self.container)]
        assert self.looks("retain") == 0
        self.programs = [Program(self.container) for _ in range(2)]
        for program in self.programs:
            program.does("retain")

    def teardown(self) -> None:
        if self.programs:
            self.everything_is_given_back()
            self.observers[0].kill()
        self.directory.cleanup()

    def everything_is_given_back(self) -> None:
        for program in self.programs:
            program.kill()
        self.looks()
        assert counted(self.container) == held(self.container) == CONTEXT_MIB * MIB

    def looks(self, step: str = "info") -> int:
        result, self.free = self.observers[0].does(step)
        return result

    # What programs do.

    def take(self, who: int, step: str, a: int, b: int, size: int) -> None:
        before = self.counted()
        result, wanted = self.programs[who].does(step, a, b, size)
        wanted = CONTEXT_MIB * MIB if step in MAKING_CONTEXTS else wanted
        if result == OUT_OF_MEMORY:
            assert self.counted() + -(-wanted // 512) * 512 > self.limit, "it would have fitted"
        else:
            assert self.counted() <= max(self.limit, before), "more than the limit"

    def do(self, who: int, step: str, a: int, b: int, size: int) -> None:
        (self.take if step in TAKING else self.change)(who, step, a, b, size)

    def change(self, who: int, step: str, a: int, b: int, size: int) -> None:
        result, _ = self.programs[who].does(step, a, b, size)
        if result == OUT_OF_MEMORY:
            assert step == "launch", "only a launch may need memory"
            assert self.counted() > self.limit, "the graphs had not passed the limit"

    @rule(
        who=st.integers(0, 1),
        step=st.sampled_from(sorted(TAKING | CHANGING)),
        a=NUMBERS,
        b=NUMBERS,
        size=SIZES,
        error=st.sampled_from(sorted(CUDA.values())),
    )
    def fail(self, who: int, step: str, a: int, b: int, size: int, error: int) -> None:
        """The driver itself fails."""
        call = (TAKING | CHANGING)[step]
        inject(self.container.node, None, parse_fault(f"fail={call}:{error}:times=1"))
        self.programs[who].does(step, a, b, size)
        inject(self.container.node, None, parse_fault("recover"))

    @rule(
        who=st.integers(0, 1),
        step=st.sampled_from(sorted(TAKING | CHANGING)),
        a=NUMBERS,
        b=NUMBERS,
        size=SIZES,
        call=st.sampled_from(ASKED),
    )
    def fail_to_answer(self, who: int, step: str, a: int, b: int, size: int, call: str) -> None:
        """The limiter does not learn what the driver holds until it asks again."""
        inject(self.container.node, None, parse_fault(f"fail={call}:999:times=1"))
        self.programs[who].does(step, a, b, size)
        inject(self.container.node, None, parse_fault("recover"))
        self.programs[who].does("wait for all")
        self.programs[who].does("trim graphs")

    def do_all(self, who: int, steps: Sequence[tuple[str, int, int, int]]) -> None:
        for step in steps:
            self.do(who, *step)
            self.what_is_counted_is_what_the_driver_holds()

    @rule(who=st.integers(0, 1), seed=st.integers(0, 99), size=SIZES)
    def run_threads(self, who: int, seed: int, size: int) -> None:
        self.programs[who].does("threads", seed, 0, size)

    @rule(who=st.integers(0, 1), size=SIZES)
    def fork(self, who: int, size: int) -> None:
        assert self.programs[who].does("fork", 0, 0, size)[0] == 0

    @rule(who=st.integers(0, 1))
    def kill(self, who: int) -> None:
        self.programs[who].kill()
        self.programs[who] = Program(self.container)
        self.programs[who].does("retain")
        self.looks()

    @rule(who=st.integers(0, 1))
    def end(self, who: int) -> None:
        self.programs[who].end()
        self.programs[who] = Program(self.container)
        self.programs[who].does("retain")
        self.looks()

    @rule(mib=st.integers(20, 80))
    def resize(self, mib: int) -> None:
        self.limit = mib * MIB
        self.container.set_limits(line(self.container.node, mib))
        # The file is read again before a refusal, by each program.
        for program in (*self.programs, *self.observers):
            program.does("alloc", size=1 << 40)

    # What always holds.

    def counted(self) -> int:
        return counted(self.container)

    @invariant()
    def what_is_counted_is_what_the_driver_holds(self) -> None:
        external = sum(program.external for program in self.programs)
        assert self.counted() == held(self.container) + external

    @invariant()
    def programs_see_their_share(self) -> None:
        if self.programs:
            self.looks()
            assert self.free == max(0, self.limit - self.counted())


def add_rules() -> None:
    """A rule for each step: Hypothesis leaves some rules out of each example, and so comes to long
    sequences of the others. And some for each kind of steps."""

    def rule_of(step: str) -> Callable[..., None]:
        def run(self: Card, who: int, a: int, b: int, size: int) -> None:
            self.do(who, step, a, b, size)

        run.__name__ = f"do_{step}".replace(" ", "_")  # a failure shows it
        who = st.sampled_from([0, 0, 0, 1])  # one program more: it comes further
        return rule(who=who, a=NUMBERS, b=NUMBERS, size=SIZES)(run)

    def rule_of_kind(kind: str) -> Callable[..., None]:
        def run(self: Card, who: int, steps: Sequence[tuple[str, int, int, int]]) -> None:
            self.do_all(who, steps)

        run.__name__ = f"do_{kind}"
        one = st.tuples(st.sampled_from(TOGETHER[kind]), NUMBERS, NUMBERS, SIZES)
        return rule(who=st.integers(0, 1), steps=st.lists(one, min_size=10, max_size=30))(run)

    for step in TAKING | CHANGING:
        setattr(Card, f"do {step}", rule_of(step))
    for kind in TOGETHER:
        for number in range(5):  # as often as a fourth of all other rules together
            setattr(Card, f"do {kind} {number}", rule_of_kind(kind))


add_rules()


def holds(examples: int, steps: int, phases: Sequence[Phase], number: int | None = None) -> None:
    """`number`: of the dice; None leaves them to Hypothesis' profile."""
    how = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        phases=phases,
        suppress_health_check=[HealthCheck.too_slow],
    )
    machine = Card if number is None else seed(number)(type("Card", (Card,), {}))
    run_state_machine_as_test(machine, settings=how)


@pytest.mark.timeout(600)  # it starts many programs, which a busy machine does slowly
def test_in_any_order_what_is_counted_is_what_the_driver_holds() -> None:
    # A failure is shown as it was found: to look for a shorter one takes minutes.
    holds(examples=4, steps=100, phases=(Phase.explicit, Phase.reuse, Phase.generate))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_in_any_order_what_is_counted_is_what_the_driver_holds_for_long() -> None:
    holds(examples=200, steps=150, phases=tuple(Phase))


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.timeout(1800)
def test_in_any_order_what_is_counted_is_what_the_driver_holds_until_the_time_is_up() -> None:
    for step in campaign("the limiter", is_long=True).steps(short=1):
        holds(2, 100, (Phase.generate,), number=step.draw.getrandbits(32))
