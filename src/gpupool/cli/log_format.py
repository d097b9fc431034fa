"""How log lines look: time, level, event, and its fields as key=value. No credentials in them."""

import logging
import sys

from kubeclient.redaction import redact

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _Fields(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        fields = " ".join(f"{k}={v}" for k, v in vars(record).items() if k not in _PLAIN)
        head, newline, trace = line.partition("\n")
        return redact(f"{head} {fields}{newline}{trace}" if fields else line)


def log_to_stderr() -> None:
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(_Fields("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[output])
