"""The exit codes of all commands; `gpupool --help` and docs/cli.md show this table."""

DONE = 0
ERROR = 1
USAGE = 2  # click's own
NOT_RUNNING = 3  # as init scripts do
INTERRUPTED = 130  # what shells report after Ctrl-C

MEANINGS = {
    DONE: "Done. Also of programs that run until they are stopped, and were.",
    ERROR: "An error, which is shown; or what was looked at is wrong (doctor, explain -f), or "
    "does not fit (whatif, defrag).",
    USAGE: "Not understood: no such command or option, or an argument is missing.",
    NOT_RUNNING: "The cluster does not run, or does not answer (status).",
    INTERRUPTED: "Ctrl-C came before it was done.",
}
