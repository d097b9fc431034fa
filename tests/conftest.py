"""What holds for every test."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.handler_turns import TURNS

# How long an example takes says how busy the machine is, as in Hypothesis' own profile "ci".
# (--hypothesis-profile comes after this.)
settings.register_profile(
    "new examples", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("new examples")

_MOST_NEW_FILES = 100  # fixtures that live on have some open


def pytest_configure() -> None:
    """Signals as a terminal gives them. `nohup`, many CI runners and `&` in a script start programs
    with some of them ignored; all that the tests start would inherit that, and what is interrupted
    or hung up would never end."""
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_request_holds_the_event_loop() -> Iterator[None]:
    """Fails a test during which a handler of the API server kept all other clients waiting."""
    TURNS.install()
    TURNS.too_long()
    yield
    found = TURNS.too_long()
    assert not found, "\n".join(found)


@pytest.fixture(autouse=True)
def no_test_leaves_files_open() -> Iterator[None]:
    """Fails the test that leaks descriptors, and not the one, much later, that gets a number which
    `select` does not take."""
    before = len(os.listdir("/proc/self/fd"))
    yield
    left = len(os.listdir("/proc/self/fd")) - before
    assert left < _MOST_NEW_FILES, f"the test has left {left} files or sockets open"
