"""Stand-ins: what a local cluster runs instead of the GPU images that the documents name.

tensorflow            a web page like that of a notebook, which shows the GPUs
gpu-player            allocates the GPU memory that the container's variables allow, and keeps it
tensorflow-gpu-mem    allocates all the GPU memory that it sees, and keeps it
cuda                  a shell, as in the image of any distribution
"""

from pathlib import Path

from gpupool.local.config.spec import ClusterSpec
from localkube.kubelet.images import Image, KnownImages, StandIn

_PROGRAMS = Path(__file__).resolve().parent / "programs"
_GPU_MEMORY = "gpupool.local.programs.gpu_memory"
_STAND_INS = {
    "tensorflow": StandIn("gpupool.local.programs.notebook", port=8888),
    "gpu-player": StandIn(_GPU_MEMORY, ("--allowed",)),
    "tensorflow-gpu-mem": StandIn(_GPU_MEMORY, files={"/app/main.py": _PROGRAMS / "gpu_memory.py"}),
}


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
