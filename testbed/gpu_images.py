"""What GPU pods run here, under the names that manifests ask for.

Nothing of these images but the name is what it says: each is this machine's Python and C library,
and a small program in place of the application. What they need of a driver is mounted by the agent.
"""

from __future__ import annotations

import io
import re
import tarfile
from pathlib import Path

from testbed import debian, python_image
from testbed.images import Image, add_file, busybox_layer, small_images, write_archive

GPU = "gpupool.test/gpu:1"  # does nothing until somebody looks
GPUPOOL = "gpupool.test/gpupool:0.1.0"
_WAIT = ("/bin/sleep", "2147483647")
# By the last part of the name; all others wait.
_APPLICATIONS = {
    "tensorflow": ("python3", "/app/notebook.py"),
    "tensorflow-gpu-mem": ("python3", "/app/main.py"),
}
_ROOT = Path(__file__).resolve().parent.parent
_EXAMPLES, _FOREIGN = _ROOT / "examples", _ROOT / "tests" / "e2e" / "foreign"

# Takes all the memory that it is shown, in pieces of 64 MiB, and says how much that was.
_TAKE_ALL = b"""
import ctypes, time
cuda = ctypes.CDLL("libcuda.so.1")
context, pointer, taken = ctypes.c_void_p(), ctypes.c_uint64(), 0
for code in (cuda.cuInit(0), cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)):
    assert code == 0, code
while cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(64 << 20)) == 0:
    taken += 64
print("took", taken, "MiB", flush=True)
time.sleep(2**31)
"""

# A page that shows the cards, as a notebook would.
_NOTEBOOK = b"""
import http.server, subprocess
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        cards = subprocess.run(["nvidia-smi", "-L"], capture_output=True).stdout
        self.send_response(200)
        self.end_headers()
        self.wfile.write(cards)
http.server.HTTPServer(("", 8888), Page).serve_forever()
"""


def write_gpu_images(target: Path, *, with_gpupool: bool = False) -> None:
    """`with_gpupool`: also an image of gpupool itself, of 300 MB."""
    layers = {
        "busybox": busybox_layer(debian.ensure("busybox")),
        "python": python_image.python_layer(),
        "applications": _applications(),
    }
    used = tuple(layers)
    images = [
        *small_images(),
        Image((GPU,), used, _WAIT, python_image.ENVIRONMENT),
        *(
            Image((name,), used, _command(name), python_image.ENVIRONMENT)
            for name in _asked_for_by_examples()
        ),
    ]
    if with_gpupool:
        layers["gpupool"] = python_image.package_layer()
        own = ("busybox", "python", "gpupool")
        images.append(Image((GPUPOOL,), own, ("gpupool",), python_image.ENVIRONMENT))
    write_archive(target, layers, images)


def _asked_for_by_examples() -> list[str]:
    texts = [
        path.read_text(encoding="utf-8")
        for folder in (_EXAMPLES, _FOREIGN)
        for path in folder.glob("*.yaml")
    ]
    return sorted({name for text in texts for name in re.findall(r"image: (\S+)", text)})


def _command(name: str) -> tuple[str, ...]:
    return _APPLICATIONS.get(name.rpartition("/")[2].partition(":")[0], _WAIT)


def _applications() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        add_file(layer, "app/main.py", _TAKE_ALL)
        # Manifests for images of Ubuntu ask for it.
        add_file(layer, "bin/bash", b'#!/bin/sh\nexec /bin/sh "$@"\n', 0o755)
        add_file(layer, "app/notebook.py", _NOTEBOOK)
    return buffer.getvalue()
