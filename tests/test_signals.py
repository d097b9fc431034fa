"""The tests pass however they were started."""

import signal
import subprocess
import sys

IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
NEEDS_SIGHUP = (
    "tests/localkube/apiserver/streams/test_exec.py::test_a_client_that_leaves_hangs_up_the_process"
)
NEEDS_SIGINT = "tests/cli/output/test_watch.py::test_a_pipe_gets_one_line_of_json_for_each_change"


def ignore() -> None:
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)


def test_tests_pass_with_the_signals_of_nohup_and_of_scripts() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, NEEDS_SIGHUP, NEEDS_SIGINT],
        preexec_fn=ignore,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
