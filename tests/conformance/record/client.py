"""Sends raw requests and keeps the answers as they are."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.record.case import Json


@dataclass(frozen=True)
class Answer:
    status: int
    content_type: str
    warnings: tuple[str, ...]
    # Parsed where it is JSON, a list of events for a watch, else the text.
    response: Json


class Client:
    def __init__(self, url: str, token: str, ca_file: Path) -> None:
        parts = urllib.parse.urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 443
        self._token = token
        self._trust = ssl.create_default_context(cafile=str(ca_file))
        self._kept = self._connect()

    def send(  # noqa: PLR0913 - one parameter for each part of a request
        self,
        method: str,
        path: str,
        body: Json = None,
        headers: Mapping[str, str] | None = None,
        *,
        anonymous: bool = False,
        events: int = 0,
        padding: int = 0,
    ) -> Answer:
        sent = dict(headers or {})
        if not anonymous:
            sent["Authorization"] = f"Bearer {self._token}"
        data = body.encode() if isinstance(body, str) else None
        if data is None and body is not None:
            data = json.dumps(body).encode() + b" " * padding
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        if events:  # a watch that is left early leaves a connection that nobody can use again
            connection = self._connect()
            try:
                connection.request(method, path, body=data, headers=sent)
                return _read(connection.getresponse(), events)
            finally:
                connection.close()
        try:
            self._kept.request(method, path, body=data, headers=sent)
            return _read(self._kept.getresponse(), events)
        except BaseException:
            self._kept.close()  # the next request opens it again
            raise

    def close(self) -> None:
        self._kept.close()

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, timeout=60, context=self._trust)


def _read(answer: http.client.HTTPResponse, events: int) -> Answer:
    content_type = answer.headers.get("Content-Type", "")
    warnings = tuple(answer.headers.get_all("Warning", []))
    response: Json
    if events and answer.status == 200:
        response = []
        while len(response) < events and (line := answer.readline()):
            response.append(json.loads(line))
    else:
        response = _parsed(answer.read(), content_type)
    return Answer(answer.status, content_type, warnings, response)


def _parsed(data: bytes, content_type: str) -> Json:
    if content_type.startswith("application/json") and data:
        return json.loads(data)
    return data.decode(errors="backslashreplace")
