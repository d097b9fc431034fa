"""Which version of localkube this is, which Kubernetes it serves, and where its files are."""

from pathlib import Path

__version__ = "0.1.0"
KUBERNETES_VERSION = "v1.35.8"  # whose API is served
PACKAGE = Path(__file__).resolve().parent
