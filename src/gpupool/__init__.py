"""gpupool schedules and shares NVIDIA GPUs on Kubernetes."""

__version__ = "0.1.0"
