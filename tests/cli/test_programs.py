"""Log lines: fields follow the event, credentials are redacted."""

import io
import logging

import pytest

from gpupool.cli.programs import log_to_stderr


def logged(monkeypatch: pytest.MonkeyPatch, **fields: object) -> str:
    output = io.StringIO()
    monkeypatch.setattr("sys.stderr", output)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    log_to_stderr()
    logging.getLogger("a").warning("pod bound", extra=fields)
    return output.getvalue()


def test_fields_follow_the_event(monkeypatch: pytest.MonkeyPatch) -> None:
    line = logged(monkeypatch, pod="x", node="y")
    assert line.endswith(" WARNING a: pod bound pod=x node=y\n")


def test_tokens_are_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "sekret" not in logged(monkeypatch, header="Bearer sekret")
