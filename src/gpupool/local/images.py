"""Stand-ins: what a local cluster runs instead of the GPU images that the documents name.

tensorflow, jupyter/*  JupyterLab; where it is not installed, a web page that shows the GPUs
gpu-player             allocates the GPU memory that the container's variables allow, and keeps it
tensorflow-gpu-mem     allocates all the GPU memory that it sees, and keeps it
cuda                   a shell, as in the image of any distribution
"""

from dataclasses import replace
from pathlib import Path

from gpupool.local.config.spec import ClusterSpec
from localkube.kubelet.images import Image, KnownImages, StandIn, program

_PROGRAMS = Path(__file__).resolve().parent / "programs"
_GPU_MEMORY = "gpupool.local.programs.gpu_memory"
_NOTEBOOK = StandIn(
    "gpupool.local.programs.notebook",
    port=8888,
    # The images have TensorFlow; here a stand-in lists the devices, where there is no real one.
    variables={"PYTHONPATH": str(_PROGRAMS.parent / "image_packages")},
    with_packages=True,
    runs_users_code=True,
)
_STAND_INS = {
    "tensorflow": _NOTEBOOK,
    "jupyter/*": replace(_NOTEBOOK, variables={**_NOTEBOOK.variables, "HOME": "/home/jovyan"}),
    "gpu-player": StandIn(_GPU_MEMORY, ("--allowed",)),
    "tensorflow-gpu-mem": StandIn(_GPU_MEMORY, files={"/app/main.py": _PROGRAMS / "gpu_memory.py"}),
}


def is_notebook(image: str) -> bool:
    stand_in = program(image, (), (), KnownImages(stand_ins=_STAND_INS)).stand_in
    return stand_in is not None and stand_in.module == _NOTEBOOK.module


def known_images(spec: ClusterSpec) -> KnownImages:
    """The images above, and those that the cluster file describes."""
    return KnownImages(
        commands={
            name: Image(image.command, image.args, image.directory)
            for name, image in spec.images.items()
        },
        stand_ins=_STAND_INS,
        shells=frozenset({"cuda"}),
    )
