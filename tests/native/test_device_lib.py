"""The stand-in for TensorFlow's list of devices, which containers of its images find."""

import re
import sys
from pathlib import Path

import gpupool
from gpupool.hardware.simdriver import NodeFiles
from tests.native.simulated import MIB, holding, python, run

PACKAGES = str(Path(gpupool.__file__).parent / "local" / "image_packages")
# To the letter as the document has it.
PROGRAM = """
from tensorflow.python.client import device_lib

def get_available_devices():
    local_device_protos = device_lib.list_local_devices()
    return [x.name for x in local_device_protos]

print(get_available_devices())
"""
DESCRIBE = "from tensorflow.python.client import device_lib\nprint({})"
REAL = "__version__ = '2.16.1'\nfrom . import python\n"


def test_the_program_of_the_document_lists_every_visible_card(node: NodeFiles) -> None:
    shown = python(node, PROGRAM, PYTHONPATH=PACKAGES)
    assert shown == "['/device:CPU:0', '/device:GPU:0', '/device:GPU:1']\n"
    shown = python(node, PROGRAM, PYTHONPATH=PACKAGES, NVIDIA_VISIBLE_DEVICES="0")
    assert shown == "['/device:CPU:0', '/device:GPU:0']\n"


def test_without_a_driver_there_is_the_cpu_alone(node: NodeFiles) -> None:
    shown = python(node, PROGRAM, PYTHONPATH=PACKAGES, LD_LIBRARY_PATH="")
    assert shown == "['/device:CPU:0']\n"


def test_devices_are_described_as_tensorflow_describes_them(node: NodeFiles) -> None:
    script = DESCRIBE.format("device_lib.list_local_devices()[:2]")
    shown = re.sub(r"incarnation: \d+", "incarnation: N", python(node, script, PYTHONPATH=PACKAGES))
    limit = re.search(r"GPU\"\nmemory_limit: (\d+)", shown)
    assert limit
    assert shown == (
        '[name: "/device:CPU:0"\n'
        'device_type: "CPU"\n'
        "memory_limit: 268435456\n"
        "locality {\n"
        "}\n"
        "incarnation: N\n"
        ', name: "/device:GPU:0"\n'
        'device_type: "GPU"\n'
        f"memory_limit: {limit[1]}\n"
        "locality {\n"
        "  bus_id: 1\n"
        "}\n"
        "incarnation: N\n"
        'physical_device_desc: "device: 0, name: Tesla V100-SXM2-16GB, pci bus id: 0000:00:07.0, '
        'compute capability: 7.0"\n'
        "]\n"
    )


def limit_of_first_card(node: NodeFiles) -> int:
    script = DESCRIBE.format("device_lib.list_local_devices()[1].memory_limit")
    return int(python(node, script, PYTHONPATH=PACKAGES))


def test_the_memory_limit_is_what_is_free_less_what_tensorflow_leaves(node: NodeFiles) -> None:
    whole = limit_of_first_card(node)
    assert whole == 16130 * MIB - 16130 * MIB // 20
    with holding(node, 0, 1000):
        assert limit_of_first_card(node) == whole - 950 * MIB


def test_it_keeps_no_memory(node: NodeFiles) -> None:
    script = """
import subprocess
from tensorflow.python.client import device_lib
device_lib.list_local_devices()
subprocess.run(["nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"], check=True)
"""
    assert python(node, script, PYTHONPATH=PACKAGES) == ""


def test_it_says_that_it_is_a_stand_in(node: NodeFiles) -> None:
    done = run(node, sys.executable, "-c", PROGRAM, extra={"PYTHONPATH": PACKAGES})
    assert "This is gpupool's stand-in" in done.stderr
    script = "import tensorflow as tf\nprint(tf.__version__)\ntf.constant(1)"
    done = run(node, sys.executable, "-c", script, extra={"PYTHONPATH": PACKAGES})
    assert done.stdout == "0.0.0+gpupool.stand.in\n"
    assert "gpupool's stand-in for TensorFlow has no 'constant'" in done.stderr


def test_a_real_tensorflow_goes_first_wherever_it_is(node: NodeFiles, tmp_path: Path) -> None:
    client = tmp_path / "site-packages" / "tensorflow" / "python" / "client"
    client.mkdir(parents=True)
    for directory in (client, client.parent):
        (directory / "__init__.py").touch()
    (client.parent.parent / "__init__.py").write_text(REAL)
    (client / "device_lib.py").write_text("def list_local_devices(): return []")
    path = f"{PACKAGES}:{tmp_path / 'site-packages'}"  # ours comes first, as PYTHONPATH does
    script = f"{PROGRAM}\nimport tensorflow as tf; print(tf.__version__, tf.python.__name__)"
    done = run(node, sys.executable, "-c", script, extra={"PYTHONPATH": path})
    assert (done.stdout, done.stderr) == ("[]\n2.16.1 tensorflow.python\n", "")
