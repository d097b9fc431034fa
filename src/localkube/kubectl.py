"""Runs the kubectl of this machine against a cluster."""

import os
import shutil
import subprocess
from pathlib import Path


def run_kubectl(kubeconfig: Path, *arguments: str, stdin: str = "") -> str:
    """What kubectl prints. Raises FileNotFoundError where there is no kubectl, and
    CalledProcessError, with stderr as a note, when it fails."""
    program = shutil.which("kubectl")
    if program is None:
        raise FileNotFoundError("kubectl is not on the PATH")
    done = subprocess.run(
        [program, *arguments],
        input=stdin,
        env=os.environ | {"KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        error = subprocess.CalledProcessError(
            done.returncode, ["kubectl", *arguments], done.stdout, done.stderr
        )
        error.add_note(done.stderr)
        raise error
    return done.stdout
