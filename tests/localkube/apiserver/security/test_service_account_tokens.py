import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.security import service_account_tokens
from localkube.apiserver.security.jws import BadSignature, Signer
from localkube.apiserver.security.service_account_tokens import (
    EARLY,
    EXPIRED,
    INVALIDATED,
    ISSUER,
    UNVERIFIED,
    Bearer,
    ServiceAccountTokens,
)
from tests.localkube.apiserver.security.security_cases import POD_REF
from tests.localkube.apiserver.security.security_world import (
    Objects,
    new_key,
    recorded_objects,
    token_for,
)

NOW_S = 1_000_000.0
KEY = new_key()
SIGNER = Signer(KEY)


@pytest.fixture
def objects() -> Objects:
    return recorded_objects()


@pytest.fixture
def tokens(objects: Objects) -> ServiceAccountTokens:
    return ServiceAccountTokens(KEY, objects)


TOKENS = ServiceAccountTokens(KEY, recorded_objects())
TOKEN = token_for(TOKENS, recorded_objects(), {}, NOW_S)
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.="


def test_a_token_speaks_for_its_service_account(
    tokens: ServiceAccountTokens, objects: Objects
) -> None:
    found = tokens.authenticate(token_for(tokens, objects, {}, NOW_S), NOW_S)
    assert isinstance(found, Bearer)
    assert found.user.name == "system:serviceaccount:default:robot"
    assert found.user.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    )
    assert found.user.uid == objects.uid("serviceaccounts", "default", "robot")
    assert found.audiences == (ISSUER,)


@given(at=st.integers(0, len(TOKEN) - 1), character=st.sampled_from(ALPHABET))
def test_a_token_with_another_character_is_nobodys(at: int, character: str) -> None:
    tampered = TOKEN[:at] + character + TOKEN[at + 1 :]
    found = TOKENS.authenticate(tampered, NOW_S)
    assert isinstance(found, Bearer) == (tampered == TOKEN)


def test_a_token_is_good_in_one_spelling_only() -> None:
    """The last character of a signature has spare bits: the same bytes in other words."""
    spellings = {TOKEN[:-1] + character for character in ALPHABET}
    good = [each for each in spellings if isinstance(TOKENS.authenticate(each, NOW_S), Bearer)]
    assert good == [TOKEN]


@given(cut=st.integers(1, len(TOKEN)))
def test_a_part_of_a_token_is_nobodys(cut: int) -> None:
    assert isinstance(TOKENS.authenticate(TOKEN[:-cut], NOW_S), str)
    assert isinstance(TOKENS.authenticate(TOKEN[cut:], NOW_S), str)


@given(text=st.text(max_size=40), dots=st.integers(0, 4))
def test_any_text_is_nobodys(text: str, dots: int) -> None:
    assert isinstance(TOKENS.authenticate(text + "." * dots + text, NOW_S), str)


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize("algorithm", ["none", "HS256", "RS256", "ES384", "es256"])
def test_another_algorithm_is_never_accepted(algorithm: str) -> None:
    _, payload, signature = TOKEN.split(".")
    header = _part({"alg": algorithm, "kid": SIGNER.key_id})
    for signed in (signature, "AA"):
        assert TOKENS.authenticate(f"{header}.{payload}.{signed}", NOW_S) == UNVERIFIED
    assert TOKENS.authenticate(f"{header}.{payload}.", NOW_S) == ""


def test_a_key_inside_the_token_is_not_used() -> None:
    """A header may offer its own key (jwk), and a careless reader would verify with it."""
    other = Signer(new_key())
    token = other.sign(base64.urlsafe_b64decode(TOKEN.split(".")[1] + "=="))
    assert TOKENS.authenticate(token, NOW_S) == UNVERIFIED
    header = _part({"alg": "ES256", "kid": SIGNER.key_id, "jwk": {}})
    assert TOKENS.authenticate(f"{header}.{token.split('.', 1)[1]}", NOW_S) == UNVERIFIED


@pytest.mark.parametrize(
    "change",
    [
        {"iss": "https://elsewhere"},
        {"sub": "system:serviceaccount:kube-system:robot"},
        {"kubernetes.io": {"namespace": "kube-system", "serviceaccount": {"name": "robot"}}},
        {"exp": "never"},
        {"exp": None},
    ],
)
def test_claims_that_do_not_fit_together_are_refused_even_if_signed(change: object) -> None:
    claims = json.loads(base64.urlsafe_b64decode(TOKEN.split(".")[1] + "=="))
    assert isinstance(change, dict)
    token = SIGNER.sign(json.dumps(claims | change).encode())
    assert TOKENS.authenticate(token, NOW_S) == UNVERIFIED


def test_something_else_that_is_signed_is_no_token() -> None:
    for payload in (b"", b"null", b"[]", b"{}", b"\xff"):
        assert TOKENS.authenticate(SIGNER.sign(payload), NOW_S) in (UNVERIFIED, "")


@pytest.mark.parametrize(
    ("after_s", "why"), [(-61, EARLY), (-59, None), (3600, None), (3659, None), (3661, EXPIRED)]
)
def test_a_token_is_good_for_its_time_only(
    tokens: ServiceAccountTokens, objects: Objects, after_s: float, why: str | None
) -> None:
    token = token_for(tokens, objects, {}, NOW_S)
    found = tokens.authenticate(token, NOW_S + after_s)
    assert (found if isinstance(found, str) else None) == why


def test_a_token_known_to_be_good_expires_all_the_same(
    tokens: ServiceAccountTokens, objects: Objects
) -> None:
    token = token_for(tokens, objects, {}, NOW_S)
    assert isinstance(tokens.authenticate(token, NOW_S), Bearer)
    assert tokens.authenticate(token, NOW_S + 4000) == EXPIRED
    assert tokens.authenticate(token, NOW_S + 4000) == EXPIRED


@pytest.mark.parametrize(("kind", "name"), [("pods", "p1"), ("secrets", "used"), ("nodes", "n1")])
def test_a_token_dies_with_what_it_is_bound_to(
    tokens: ServiceAccountTokens, objects: Objects, kind: str, name: str
) -> None:
    ref = {"kind": kind.removesuffix("s").title(), "apiVersion": "v1", "name": name}
    token = token_for(tokens, objects, {"boundObjectRef": ref}, NOW_S)
    assert isinstance(tokens.authenticate(token, NOW_S), Bearer)
    bound = objects.get(kind, "" if kind == "nodes" else "default", name)
    assert bound is not None
    objects.found.remove(bound)
    assert tokens.authenticate(token, NOW_S) == INVALIDATED
    # One of the same name is another.
    objects.found.append(bound | {"metadata": bound["metadata"] | {"uid": "new"}})
    assert tokens.authenticate(token, NOW_S) == INVALIDATED


def test_a_pods_token_outlives_its_node(tokens: ServiceAccountTokens, objects: Objects) -> None:
    token = token_for(tokens, objects, {"boundObjectRef": POD_REF}, NOW_S)
    objects.found = [each for each in objects.found if each["kind"] != "Node"]
    assert isinstance(tokens.authenticate(token, NOW_S), Bearer)


def test_a_token_dies_with_its_service_account(
    tokens: ServiceAccountTokens, objects: Objects
) -> None:
    token = token_for(tokens, objects, {}, NOW_S)
    account = objects.get("serviceaccounts", "default", "robot")
    assert account is not None
    account["metadata"] = account["metadata"] | {"uid": "new"}
    old = TOKENS._uids.uid("serviceaccounts", "default", "robot")
    assert tokens.authenticate(token, NOW_S) == (
        f"service account UID (new) does not match claim ({old})"
    )
    objects.found.remove(account)
    assert tokens.authenticate(token, NOW_S) == 'serviceaccounts "robot" not found'


def test_a_token_for_another_audience_is_not_for_us(
    tokens: ServiceAccountTokens, objects: Objects
) -> None:
    token = token_for(tokens, objects, {"audiences": ["vault"]}, NOW_S)
    assert isinstance(tokens.authenticate(token, NOW_S), str)
    found = tokens.authenticate(token, NOW_S, ["vault"])
    assert isinstance(found, Bearer)
    assert found.audiences == ("vault",)


def test_only_so_many_good_tokens_are_remembered(
    tokens: ServiceAccountTokens, objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_account_tokens, "_MAX_REMEMBERED", 2)
    made = [token_for(tokens, objects, {}, NOW_S) for _ in range(4)]
    for token in made + made:
        assert isinstance(tokens.authenticate(token, NOW_S), Bearer)
    assert len(tokens._known) == 2


def test_a_header_of_another_spelling_is_refused_even_if_signed() -> None:
    signer = Signer(KEY)
    signer._header = _part({"typ": "JWT", "alg": "ES256", "kid": SIGNER.key_id})
    with pytest.raises(BadSignature):
        SIGNER.verify(signer.sign(b"{}"))


@given(payload=st.binary(max_size=60))
def test_what_is_signed_comes_back(payload: bytes) -> None:
    assert SIGNER.verify(SIGNER.sign(payload)) == payload


@given(payload=st.binary(max_size=20))
def test_a_signature_by_another_key_is_refused(payload: bytes) -> None:
    with pytest.raises(BadSignature):
        SIGNER.verify(OTHER.sign(payload))


OTHER = Signer(new_key())


def test_a_key_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="PEM"):
        Signer(b"garbage")
