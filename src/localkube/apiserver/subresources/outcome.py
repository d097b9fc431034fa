"""Answers of actions that have no object to show."""

import orjson

from localkube.apiserver.request import Answer

_CREATED = orjson.dumps(
    {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
)


def created() -> Answer:
    return Answer(201, _CREATED)
