"""`python -m localkube`: a cluster in this terminal until Ctrl-C."""

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import uvloop

from localkube.about import KUBERNETES_VERSION
from localkube.apiserver.security.certificates import CertificateError
from localkube.apiserver.server import raise_open_files_limit, tune_garbage_collector
from localkube.apiserver.store.disk import StoreDamaged
from localkube.assembly import ClusterSettings, Extension, RunningCluster, run_cluster
from localkube.cluster import ClusterFailed, with_nodes
from localkube.data_directory import (
    DataDirectoryError,
    Lock,
    make_data_directory,
    restrict_umask,
)
from localkube.kubelet.wall import missing_wall, no_wall_words
from localkube.supervision import first_cause

_FORESEEN = (OSError, CertificateError, ClusterFailed, DataDirectoryError, StoreDamaged)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    restrict_umask()
    raise_open_files_limit()
    with tempfile.TemporaryDirectory(prefix="localkube-") as scratch:
        directory = options.directory or Path(scratch) / "cluster"
        try:
            missing = missing_wall(Path(scratch))
            if missing and options.sandbox == "required":
                raise ClusterFailed(f"--sandbox=required: {no_wall_words(missing)}")
            make_data_directory(directory)
            settings = ClusterSettings(
                options.name,
                directory.resolve(),
                options.port,
                wall_required=options.sandbox == "required",
            )
            if missing:
                print(f"localkube: {no_wall_words(missing)}", file=sys.stderr)
            with Lock(directory), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(_run(settings, options.nodes))
        except Exception as error:
            cause = first_cause(error)
            if not isinstance(cause, _FORESEEN):
                raise
            print(f"localkube: {cause}", file=sys.stderr)
            return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m localkube",
        description="Run a Kubernetes cluster in this terminal until Ctrl-C. It listens on "
        "127.0.0.1 only.",
    )
    parser.add_argument(
        "--nodes", type=_number_up_to(1000), default=1, help="number of nodes (default: 1)"
    )
    parser.add_argument(
        "--name", default="local", help="name of the cluster in the kubeconfig (default: local)"
    )
    parser.add_argument(
        "--port",
        type=_number_up_to(65535),
        default=0,
        help="port of the API server (default: any free port)",
    )
    parser.add_argument(
        "--directory",
        type=Path,
        help="directory for the cluster's data, which stays after Ctrl-C (default: a temporary "
        "directory, which is deleted)",
    )
    parser.add_argument(
        "--sandbox",
        choices=("auto", "required"),
        default="auto",
        help="required: do not start where this machine allows no wall around containers "
        "(default: auto, which warns)",
    )
    return parser


def _number_up_to(most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if text.isascii() and text.isdecimal() and int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"wanted a number from 0 to {most}, found {text!r}")

    return parse


async def _run(settings: ClusterSettings, nodes: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    def ready(cluster: RunningCluster) -> None:
        tune_garbage_collector()
        print(f"Kubernetes {KUBERNETES_VERSION} answers at https://127.0.0.1:{cluster.port}")
        print(f"  export KUBECONFIG={settings.kubeconfig}")
        print("  kubectl get nodes")
        print("Ctrl-C stops it.", flush=True)

    await run_cluster(settings, with_nodes(Extension(), nodes), ready=ready, stop=stop)


if __name__ == "__main__":
    sys.exit(main())
