"""The real nvidia-smi and nvtop, from Debian, run on the simulated driver."""

from pathlib import Path

import pytest

from gpupool.hardware.simdriver import NodeFiles, inject, read_cards
from gpupool.hardware.simdriver_faults import parse_fault
from tests.native import debian
from tests.native.simulated import V100, environment, holding, make_node, run
from tests.native.terminal import shown_by


@pytest.fixture(params=debian.SMIS)
def smi(request: pytest.FixtureRequest) -> Path:
    return debian.available(debian.SMIS[request.param])


pytestmark = pytest.mark.filterwarnings("default:NOT TESTED")


def test_the_screen_shows_cards_memory_and_processes(node: NodeFiles, smi: Path) -> None:
    with holding(node, 0, 1929) as child:
        screen = run(node, smi)
    assert screen.returncode == 0, screen.stdout
    assert "Tesla V100-SXM2-16GB           On" in screen.stdout
    assert "1929MiB / 16130MiB" in " ".join(screen.stdout.split())
    assert f" {child.pid}      C   " in screen.stdout
    assert "Driver Version: 550.163.01" in screen.stdout


@pytest.mark.parametrize(
    "command",
    ["-L", "-q", "-q -x", "-q -d MEMORY", "-q -d PIDS", "topo -m", "nvlink -s", "-pm 1", "-c 3"],
)
def test_other_commands_work(node: NodeFiles, smi: Path, command: str) -> None:
    done = run(node, smi, *command.split())
    assert (done.returncode, done.stderr) == (0, "")


def test_a_query_returns_the_card_name_that_the_documentation_uses(
    node: NodeFiles, smi: Path
) -> None:
    query = ("--query-gpu=gpu_name", "--format=csv,noheader", "--id=0")
    assert run(node, smi, *query).stdout == "Tesla V100-SXM2-16GB\n"


def test_eight_cards_are_linked_as_a_cube_mesh(tmp_path: Path, smi: Path) -> None:
    files = make_node(tmp_path / "node", [V100] * 8)
    rows = [line.split("\t") for line in run(files, smi, "topo", "-m").stdout.splitlines()]
    first = next(row for row in rows if row[0] == "GPU0")
    assert [cell.strip() for cell in first[1:9]] == [
        *("X", "NV1", "NV1", "NV2", "NV2", "PHB", "PHB", "PHB")
    ]


def test_cards_on_an_nvswitch_have_all_links_to_one_another(tmp_path: Path, smi: Path) -> None:
    files = make_node(tmp_path / "node", ["NVIDIA A100-SXM4-80GB"] * 2)
    assert "GPU0\t X \tNV12" in run(files, smi, "topo", "-m").stdout


def test_a_lost_card_is_reported(node: NodeFiles, smi: Path) -> None:
    inject(node, 0, parse_fault("xid=79"))
    done = run(node, smi)
    assert done.returncode != 0
    assert "GPU is lost" in done.stdout


def test_our_nvidia_smi_prints_the_same_screen_as_the_real_one(node: NodeFiles) -> None:
    real = debian.available(debian.NVIDIA_SMI_550)
    with holding(node, 1, 777):
        theirs, ours = run(node, real).stdout, run(node, "nvidia-smi").stdout
    # The first line is the time of day, and the two shorten the name of the process differently.
    kept = [line for line in theirs.splitlines()[1:] if "python" not in line]
    assert [line for line in ours.splitlines()[1:] if "python" not in line] == kept
    theirs_process = next(line for line in theirs.splitlines() if "python" in line)
    ours_process = next(line for line in ours.splitlines() if "python" in line)
    assert len(ours_process) == len(theirs_process)
    assert ours_process[-12:] == theirs_process[-12:]


FIELDS = (
    *("index", "name", "uuid", "serial", "pci.bus_id", "driver_version", "memory.total"),
    *("memory.used", "memory.free", "utilization.gpu", "temperature.gpu", "power.draw"),
    *("power.limit", "clocks.max.sm", "clocks.mem", "pstate", "compute_mode", "compute_cap"),
    *("persistence_mode", "ecc.mode.current", "mig.mode.current", "fan.speed", "count"),
    *("ecc.errors.uncorrected.volatile.total", "pcie.link.gen.max", "pcie.link.width.current"),
)


@pytest.mark.parametrize("layout", ["csv", "csv,noheader", "csv,nounits", "csv,noheader,nounits"])
def test_our_nvidia_smi_answers_queries_like_the_real_one(node: NodeFiles, layout: str) -> None:
    real = debian.available(debian.NVIDIA_SMI_550)
    query = (f"--query-gpu={','.join(FIELDS)}", f"--format={layout}")
    assert run(node, "nvidia-smi", *query).stdout == run(node, real, *query).stdout


def test_our_nvidia_smi_lists_processes_like_the_real_one(node: NodeFiles) -> None:
    real = debian.available(debian.NVIDIA_SMI_550)
    query = ("--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv")
    with holding(node, 0, 5, 1, 6):
        assert run(node, "nvidia-smi", *query).stdout == run(node, real, *query).stdout


def test_nvtop_shows_the_card(node: NodeFiles) -> None:
    shown = shown_by(debian.available(debian.NVTOP), "-C", env=environment(node), until=b"15.752")
    assert b"Tesla V100-SXM2-16GB" in shown
    assert b"15.752" in shown  # GiB: 16130 MiB
    assert not read_cards(node)[0].processes
