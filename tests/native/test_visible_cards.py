"""Environment variables decide which cards a process sees."""

import pytest

from gpupool.hardware.simdriver import NodeFiles, read_cards
from tests.native.simulated import V100, make_node, run
from tests.native.simulated import python as printed

COUNT = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
result, count, seen = cuda.cuInit(0), ctypes.c_int(), []
if result == 0:
    cuda.cuDeviceGetCount(ctypes.byref(count))
for device in range(count.value):
    text = ctypes.create_string_buffer(20)
    cuda.cuDeviceGetPCIBusId(text, 20, device)
    seen.append(int(text.value[8:10], 16) - 7)
print(result, seen)
"""


@pytest.fixture
def four(tmp_path_factory: pytest.TempPathFactory) -> NodeFiles:
    return make_node(tmp_path_factory.mktemp("four") / "node", [V100] * 4)


def cuda(files: NodeFiles, **variables: str) -> str:
    return printed(files, COUNT, **variables).strip()


def listed(files: NodeFiles, **variables: str) -> list[str]:
    query = ("nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader")
    return run(files, *query, extra=variables).stdout.splitlines()


def test_without_a_selection_all_cards_are_visible(four: NodeFiles) -> None:
    assert cuda(four) == "0 [0, 1, 2, 3]"
    assert cuda(four, NVIDIA_VISIBLE_DEVICES="all") == "0 [0, 1, 2, 3]"


def test_nvidia_visible_devices_selects_the_cards_of_a_container(four: NodeFiles) -> None:
    uuids = [card.uuid for card in read_cards(four)]
    given = f"{uuids[3]},{uuids[1]}"
    assert listed(four, NVIDIA_VISIBLE_DEVICES=given) == [uuids[1], uuids[3]]
    assert cuda(four, NVIDIA_VISIBLE_DEVICES=given) == "0 [1, 3]"
    assert listed(four, NVIDIA_VISIBLE_DEVICES="2") == [uuids[2]]


@pytest.mark.parametrize("value", ["void", "", "none", "GPU-00000000", "9"])
def test_cuda_finds_no_device_in_a_container_without_cards(four: NodeFiles, value: str) -> None:
    assert cuda(four, NVIDIA_VISIBLE_DEVICES=value) == "100 []"  # CUDA_ERROR_NO_DEVICE


def test_void_hides_the_driver_and_none_hides_the_cards(four: NodeFiles) -> None:
    done = run(four, "nvidia-smi", extra={"NVIDIA_VISIBLE_DEVICES": "void"})
    assert done.returncode == 9
    assert "couldn't communicate with the NVIDIA driver" in done.stdout
    done = run(four, "nvidia-smi", extra={"NVIDIA_VISIBLE_DEVICES": "none"})
    assert (done.returncode, done.stdout) == (6, "No devices were found\n")


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ("2,0", "0 [2, 0]"),
        ("3", "0 [3]"),
        ("1,7,2", "0 [1]"),  # an unknown card ends the list
        ("1,1", "100 []"),  # a card that is named twice hides all
        ("", "100 []"),
        ("-1", "100 []"),
    ],
)
def test_cuda_visible_devices_selects_and_orders_cards(
    four: NodeFiles, value: str, seen: str
) -> None:
    assert cuda(four, CUDA_VISIBLE_DEVICES=value) == seen


def test_cuda_visible_devices_counts_among_the_cards_of_the_container(four: NodeFiles) -> None:
    uuids = [card.uuid for card in read_cards(four)]
    given = f"{uuids[1]},{uuids[3]}"
    assert cuda(four, NVIDIA_VISIBLE_DEVICES=given, CUDA_VISIBLE_DEVICES="1") == "0 [3]"
    named = uuids[3][:12]  # the beginning is enough
    assert cuda(four, NVIDIA_VISIBLE_DEVICES=given, CUDA_VISIBLE_DEVICES=named) == "0 [3]"
    hidden = uuids[0]
    assert cuda(four, NVIDIA_VISIBLE_DEVICES=given, CUDA_VISIBLE_DEVICES=hidden) == "100 []"
    assert len(listed(four, NVIDIA_VISIBLE_DEVICES=given, CUDA_VISIBLE_DEVICES="1")) == 2
