"""What holds for every test."""

import signal
from collections.abc import Iterator

import pytest

from tests.handler_turns import TURNS


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
    TURNS.too_long.clear()
    yield
    assert not TURNS.too_long, "\n".join(TURNS.too_long)
