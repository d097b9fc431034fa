"""Signals as a terminal gives them, wherever the tests were started.

`nohup`, many CI runners and `&` in a script start programs with SIGHUP, SIGINT or SIGQUIT ignored.
All that the tests start would inherit that: what is interrupted or hung up would never end.
"""

import signal


def pytest_configure() -> None:
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
