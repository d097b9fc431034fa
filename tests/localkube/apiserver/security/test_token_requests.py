import base64
import json
from typing import Any

import pytest

from localkube.apiserver.security.service_account_tokens import ServiceAccountTokens
from localkube.apiserver.security.token_requests import answer_token_request
from localkube.apiserver.status import ApiError
from tests.localkube.apiserver.security import security_cases as cases
from tests.localkube.apiserver.security.security_world import (
    RECORDED,
    answered,
    new_key,
    recorded_objects,
)

OBJECTS = recorded_objects()
TOKENS = ServiceAccountTokens(new_key(), OBJECTS)
RECORDED_AT_S = float(RECORDED["token_requests"][0]["token"][1]["iat"])


def _claims(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=="))
    return found


def _answer(account: str, body: Any, now_s: float) -> Any:
    found = OBJECTS.get("serviceaccounts", "default", account)
    assert found is not None
    return answer_token_request(body, found, tokens=TOKENS, find=OBJECTS.get, now_s=now_s)


@pytest.mark.parametrize(("case", "recorded"), answered(cases.TOKEN_REQUESTS, "token_requests"))
def test_token_requests_are_answered_as_kubernetes_does(
    case: tuple[str, Any], recorded: Any
) -> None:
    if recorded["status"] != 201:
        with pytest.raises(ApiError) as refusal:
            _answer(*case, RECORDED_AT_S)
        assert refusal.value.status == recorded["answer"]
        return
    wanted = recorded["token"][1]
    answer = _answer(*case, float(wanted["iat"]))
    claims = _claims(answer["status"].pop("token"))
    assert answer == recorded["answer"]
    assert claims | {"jti": ""} == wanted | {"jti": ""}


def test_every_token_is_another() -> None:
    tokens = {_answer("robot", {}, RECORDED_AT_S)["status"]["token"] for _ in range(3)}
    assert len(tokens) == 3


def test_an_object_of_another_group_cannot_be_bound() -> None:
    ref = {"kind": "Deployment", "apiVersion": "apps/v1", "name": "d"}
    with pytest.raises(ApiError, match="object of type apps/v1, Kind=Deployment"):
        _answer("robot", {"spec": {"boundObjectRef": ref}}, 0)


@pytest.mark.parametrize(
    "body",
    [
        {"spec": []},
        {"spec": {"expirationSeconds": "600"}},
        {"spec": {"expirationSeconds": 600.5}},
        {"spec": {"audiences": "vault"}},
        {"spec": {"audiences": [1]}},
        {"spec": {"boundObjectRef": "p1"}},
        {"metadata": {"name": 1}},
    ],
)
def test_a_request_of_another_shape_is_a_bad_request(body: Any) -> None:
    with pytest.raises(ApiError) as refusal:
        _answer("robot", body, 0)
    assert refusal.value.code == 400
    assert refusal.value.status["message"].startswith(
        'TokenRequest in version "v1" cannot be handled as a TokenRequest: Expected'
    )
