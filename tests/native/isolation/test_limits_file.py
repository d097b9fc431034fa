"""The limit file is read again while programs run. An invalid file allows no memory."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.native.isolation.cuda_script import CUDA
from tests.native.isolation.limited import Container, line, make_container
from tests.native.simulated import make_node

EVALUATE = f"""
{CUDA}
begin()
for text in sys.stdin:
    print(*eval(text), flush=True)
"""
# On a card that may not be used, not even a context can be created.
NO_CONTEXT = f"""
{CUDA}
ok(lib.cuInit(0))
total = c_size_t()
ok(lib.cuDeviceTotalMem_v2(byref(total), 0))
print(lib.cuDevicePrimaryCtxRetain(byref(c_void_p()), 0), total.value)
"""


@contextmanager
def session(container: Container) -> Iterator["Session"]:
    process = subprocess.Popen(
        [sys.executable, "-c", EVALUATE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=container.variables(),
    )
    try:
        yield Session(process)
    finally:
        process.kill()
        process.communicate()


class Session:
    """A program that evaluates the expressions that it is sent."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def ask(self, expression: str) -> list[float]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{expression}\n")
        self.process.stdin.flush()
        return [float(word) for word in self.process.stdout.readline().split()]


def smi(container: Container) -> str:
    query = ("--query-gpu=memory.total,memory.used", "--format=csv,noheader,nounits")
    return container.run("nvidia-smi", *query).stdout.strip()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "unlimited please\n",
        "GPU-0\n",
        "GPU-0 3226\n",
        "GPU-0 3226 0 0\n",
        "GPU-0 -1 0\n",
        "GPU-0 3226 101\n",
        "GPU-0  3226 0\n",
        "GPU-0 99999999999999999999 0\n",
        "GPU-" + "0" * 60 + " 3226 0\n",
        "GPU-0 3226 0\n" * 17,
        "x" * 9000,
    ],
)
def test_an_invalid_limit_file_allows_no_memory(tmp_path: Path, text: str) -> None:
    container = make_container(tmp_path, limits=text)
    done = container.run(sys.executable, "-c", NO_CONTEXT)
    assert done.stdout == "2 0\n"
    assert done.stderr.count("this container may use no GPU memory") == 1
    assert smi(container) == "0, 0"


def test_one_invalid_line_makes_the_whole_file_invalid(tmp_path: Path) -> None:
    node = make_node(tmp_path / "node")
    container = make_container(tmp_path, node, limits=line(node) + "GPU-1 much 0\n")
    assert smi(container) == "0, 0"


def test_a_missing_limit_file_allows_no_memory(container: Container) -> None:
    container.limits.unlink()
    assert smi(container) == "0, 0"
    done = container.run(sys.executable, "-c", NO_CONTEXT)
    assert done.stdout == "2 0\n"
    assert f"{container.limits}: there are no limits" in done.stderr


def test_without_a_region_no_memory_is_allowed(tmp_path: Path) -> None:
    container = make_container(tmp_path)
    container.region.mkdir()
    done = container.run(sys.executable, "-c", NO_CONTEXT)
    assert done.stdout == "2 0\n"
    assert "Is a directory; this container may use no GPU memory" in done.stderr


def test_a_card_without_a_line_may_not_be_used(tmp_path: Path) -> None:
    node = make_node(tmp_path / "node")
    container = make_container(tmp_path, node, limits=line(node, card=1))
    script = f"{NO_CONTEXT}\nbegin(1)\nprint(alloc(MIB)[0], free_mib())"
    assert container.python(script, NVIDIA_VISIBLE_DEVICES="0,1") == "2 0\n0 3225.0\n"


def test_each_of_two_cards_has_its_own_limit(tmp_path: Path) -> None:
    node = make_node(tmp_path / "node")
    limits = line(node, 2000, card=1) + line(node, 1000, card=0)
    container = make_container(tmp_path, node, limits=limits)
    script = f"""
{CUDA}
for device in 0, 1:
    begin(device)
    print(len(fill(alloc, 100 * MIB)[0]), free_mib())
"""
    assert container.python(script, NVIDIA_VISIBLE_DEVICES="all") == "10 0.0\n20 0.0\n"
    # The limits follow the UUIDs of the cards, not their order.
    script = script.replace("for device in 0, 1", "for device in 0,")
    assert container.python(script, NVIDIA_VISIBLE_DEVICES="all", CUDA_VISIBLE_DEVICES="1") == (
        "20 0.0\n"
    )


def test_a_raised_limit_is_valid_for_the_next_allocation(container: Container) -> None:
    with session(container) as program:
        assert program.ask("alloc(3226 * MIB)[:1]") == [0]
        assert program.ask("alloc(1000 * MIB)[:1]") == [2]
        container.set_limits(line(container.node, 5000))
        assert program.ask("alloc(1000 * MIB)[:1]") == [0]
        assert smi(container) == "5000, 4226"


def test_a_lowered_limit_refuses_new_memory_and_keeps_what_is_in_use(container: Container) -> None:
    with session(container) as program:
        assert program.ask("alloc(2000 * MIB)[:1]") == [0]
        container.set_limits(line(container.node, 1500))
        # The file is read again at most a tenth of a second later.
        while program.ask("alloc(MIB)[:1]") == [0]:
            pass
        assert program.ask("[free_mib()]") == [0]
        total, used = map(int, smi(container).split(", "))
        assert total == used >= 2000


def test_a_running_program_is_still_counted_while_there_is_no_limit(container: Container) -> None:
    with session(container) as program:
        assert program.ask("alloc(3226 * MIB)[:1]") == [0]
        container.set_limits("unlimited\n")
        assert program.ask("alloc(3000 * MIB)[:1]") == [0]
        container.set_limits(line(container.node, 7000))
        # The file is read again at most a tenth of a second later.
        while program.ask("[free_mib()]") != [7000 - 3226 - 3000]:
            pass
        assert program.ask("alloc(774 * MIB)[:1] + alloc(MIB)[:1]") == [0, 2]
        assert smi(container) == "7000, 7000"
