import base64
from collections.abc import Sequence
from typing import Any

import pytest

from localkube.apiserver.request import Request, User
from localkube.apiserver.security.authentication import Authenticator
from localkube.apiserver.security.identities import ADMIN, ANONYMOUS
from localkube.apiserver.security.service_account_tokens import ServiceAccountTokens
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.status import ApiError
from tests.localkube.apiserver.security import security_cases as cases
from tests.localkube.apiserver.security.security_world import (
    answered,
    new_key,
    recorded_authorizer,
    recorded_objects,
    token_for,
)

KEY = new_key()
AUTHORIZER = recorded_authorizer()
PROTOCOL = "base64url.bearer.authorization.k8s.io."


class Clock:
    now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


class Door:
    """An authenticator and all that is behind it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.objects = recorded_objects()
        self.static = StaticTokens()
        self.accounts = ServiceAccountTokens(KEY, self.objects)
        self.authenticator = Authenticator(self.static, self.accounts, AUTHORIZER, self.clock)
        self.admin = self.static.issue(ADMIN)

    def account_token(self, **spec: Any) -> str:
        return token_for(self.accounts, self.objects, spec, self.clock.now_s)

    def enter(self, token: str, path: str = "/api") -> User | None:
        request = Request("GET", path, headers={"authorization": f"Bearer {token}"})
        return self.authenticator.authenticate(request)


@pytest.fixture
def door() -> Door:
    return Door()


def test_the_administrators_token_is_the_administrator(door: Door) -> None:
    assert door.enter(door.admin) == ADMIN


def test_a_service_accounts_token_is_the_service_account(door: Door) -> None:
    user = door.enter(door.account_token())
    assert user is not None
    assert user.name == "system:serviceaccount:default:robot"


def test_a_token_for_somebody_else_is_not_accepted(door: Door) -> None:
    assert door.enter(door.account_token(audiences=["vault"])) is None


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic Zm9vOmJhcg==", "bearer  x", "x", "Bearer wrong"]
)
def test_other_headers_are_nobody(door: Door, header: str) -> None:
    request = Request("GET", "/api", headers={"authorization": header})
    assert door.authenticator.authenticate(request) is None


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_may_be_written_in_any_case(door: Door, scheme: str) -> None:
    request = Request("GET", "/api", headers={"authorization": f"{scheme} {door.admin}"})
    assert door.authenticator.authenticate(request) == ADMIN


def test_two_tokens_at_once_are_nobody(door: Door) -> None:
    assert door.enter(f"{door.admin}, Bearer {door.admin}") is None


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/livez/ping", "/readyz", "/version"])
def test_anybody_may_ask_whether_the_server_is_up(door: Door, path: str) -> None:
    assert door.authenticator.authenticate(Request("GET", path)) == ANONYMOUS


@pytest.mark.parametrize("path", ["/", "/api", "/healthzz", "/apis", "/metrics", "/openapi/v3"])
def test_nobody_may_ask_anything_else(door: Door, path: str) -> None:
    assert door.authenticator.authenticate(Request("GET", path)) is None


def test_a_wrong_token_is_refused_even_where_none_is_needed(door: Door) -> None:
    assert door.enter("wrong", "/healthz") is None


def _offer(door: Door, protocols: str, **headers: str) -> User | None:
    sent = {"upgrade": "websocket", "sec-websocket-protocol": protocols} | headers
    return door.authenticator.authenticate(Request("GET", "/api", headers=sent))


def _encoded(token: str) -> str:
    return PROTOCOL + base64.urlsafe_b64encode(token.encode()).rstrip(b"=").decode()


def test_a_browsers_websocket_may_offer_the_token_as_a_protocol(door: Door) -> None:
    assert _offer(door, f"v5.channel.k8s.io, {_encoded(door.admin)}") == ADMIN


def test_a_token_alone_is_no_protocol_to_agree_on(door: Door) -> None:
    assert _offer(door, _encoded(door.admin)) is None


def test_two_tokens_as_protocols_are_nobody(door: Door) -> None:
    offered = f"v5.channel.k8s.io, {_encoded(door.admin)}, {_encoded('x')}"
    assert _offer(door, offered) is None


def test_a_protocol_is_no_token_without_a_websocket(door: Door) -> None:
    assert _offer(door, f"v5.channel.k8s.io, {_encoded(door.admin)}", upgrade="") is None


@pytest.mark.parametrize("rest", ["", "!!!", "_w", "a"])
def test_a_garbled_protocol_is_nobody(door: Door, rest: str) -> None:
    assert _offer(door, f"v5.channel.k8s.io, {PROTOCOL}{rest}") is None


def test_whoever_keeps_failing_keeps_nobody_out(door: Door) -> None:
    header, claims, _signature = door.account_token().split(".")
    for number in range(200):
        assert door.enter("wrong") is None
        assert door.enter(f"{header}.{claims}.{number:086}") is None
    assert door.enter(door.admin) == ADMIN
    assert door.enter(door.account_token()) is not None


def test_who_really_asks_is_known(door: Door) -> None:
    headers = {"authorization": f"Bearer {door.admin}", "impersonate-user": "bob"}
    request = Request("GET", "/api", headers=headers)
    user = door.authenticator.authenticate(request)
    assert user is not None
    assert user.name == "bob"
    assert request.requester == ADMIN.name


@pytest.mark.parametrize(("case", "recorded"), answered(cases.IMPERSONATIONS, "impersonations"))
def test_impersonation_is_judged_as_kubernetes_does(
    door: Door, case: tuple[str, Sequence[tuple[str, str]]], recorded: Any
) -> None:
    name, lines = case
    headers = {key.lower(): value for key, value in lines}
    ivy = User("ivy", ("system:authenticated",))
    headers["authorization"] = f"Bearer {door.static.issue(ivy) if name else door.admin}"
    request = Request("POST", "/x", headers=headers)
    message = recorded["answer"].get("message", "")
    if "impersonat" in message:
        with pytest.raises(ApiError) as refusal:
            door.authenticator.authenticate(request)
        assert refusal.value.status == recorded["answer"]
        return
    user = door.authenticator.authenticate(request)
    assert user is not None
    if message:
        # Impersonated all right; but such a user may not even ask who they are.
        assert f'User "{user.name}" cannot create' in message
        return
    info = recorded["answer"]["status"]["userInfo"]
    extra = {key: tuple(values) for key, values in info.get("extra", {}).items()}
    assert user == User(info["username"], tuple(info["groups"]), info.get("uid", ""), extra)


def test_repeated_groups_come_joined_by_commas(door: Door) -> None:
    headers = {"authorization": f"Bearer {door.admin}", "impersonate-user": "a"}
    headers["impersonate-group"] = "g, h,, i"
    user = door.authenticator.authenticate(Request("GET", "/x", headers=headers))
    assert user is not None
    assert user.groups == ("g", "h", "i", "system:authenticated")
