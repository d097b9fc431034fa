"""Reviews and token requests: created, answered in place, never stored."""

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.api import Api
from localkube.apiserver.decode.body import read_any, read_object
from localkube.apiserver.kinds import Kind
from localkube.apiserver.patch.managed_fields import Writer, track_create
from localkube.apiserver.request import Answer, Request
from localkube.apiserver.routing import Target
from localkube.apiserver.schema.check import conform
from localkube.apiserver.schema.load import schema_of
from localkube.apiserver.security.access import Access, forbidden
from localkube.apiserver.security.node_creation import creation_refusal
from localkube.apiserver.security.reviews import Question, review
from localkube.apiserver.security.token_requests import answer_token_request
from localkube.apiserver.verbs.options import WriteOptions, write_options
from localkube.apiserver.verbs.read import existing
from localkube.apiserver.verbs.representation import answer_object
from localkube.apiserver.verbs.typed_body import done

_UNTRACKED = frozenset({"SelfSubjectReview", "SelfSubjectRulesReview"})
_TOKEN_REQUEST = Kind(
    group="authentication.k8s.io",
    version="v1",
    kind="TokenRequest",
    plural="tokenrequests",
    singular="tokenrequest",
    namespaced=True,
    verbs=("create",),
    virtual=True,
)


async def review_request(api: Api, request: Request, target: Target) -> Answer:
    assert request.user is not None
    options = write_options(request, "CreateOptions")
    body = await done(api, request, lambda: _read(api, request, target, options))
    question = Question(
        body=body,
        user=request.user,
        namespace=target.namespace,
        authorizer=api.authorizer,
        authenticator=api.authenticator,
        now_s=api.clock(),
    )
    answer = review(target.kind.kind, question)
    return answer_object(api, request, target.kind, answer, 201)


def _read(api: Api, request: Request, target: Target, options: WriteOptions) -> Obj:
    kind, schema = target.kind, api.schema(target.kind)
    body = read_object(request.body, request.headers.get("content-type", ""), kind)
    request.warnings += conform(body, kind, schema, options.validation)
    _place(body, target)
    if request.track_fields and kind.kind not in _UNTRACKED:
        track_create(body, Writer(options.manager, api.stamp()), kind, schema)
    return body


def _place(body: Obj, target: Target) -> None:
    metadata = body.setdefault("metadata", {})
    if metadata.pop("namespace", "") not in ("", target.namespace) and target.kind.namespaced:
        raise status.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if target.kind.namespaced:
        metadata["namespace"] = target.namespace


def _track(answer: Obj, spec: Obj, writer: Writer, kind: Kind) -> None:
    """Token requests are never stored, and yet they name the owners of their fields."""
    sent: Obj = {"metadata": {}, "spec": spec}
    track_create(sent, writer, kind, schema_of(kind.group, kind.version, kind.kind))
    answer["metadata"] = {**answer["metadata"], **sent["metadata"]}


async def token_request(api: Api, request: Request, target: Target) -> Answer:
    assert request.user is not None
    media = request.headers.get("content-type", "")
    body = await done(api, request, lambda: read_any(request.body, media))
    access = Access("create", "", "serviceaccounts", "token", target.namespace, target.name)
    refused = creation_refusal(request.user, access, body, api.stored)
    if refused:
        raise forbidden(request.user, access, refused)

    def find(resource: str, namespace: str, name: str) -> Obj | None:
        record = api.store.get(resource, namespace, name)
        return None if record is None else record.obj()

    account = existing(api, target).obj()
    if "deletionTimestamp" in account["metadata"]:
        raise status.not_found(target.kind, target.name)
    answer = answer_token_request(
        body, account, tokens=api.account_tokens, find=find, now_s=api.clock()
    )
    if request.track_fields:
        options = write_options(request, "CreateOptions")
        writer = Writer(options.manager, api.stamp(), "token")
        asked = (body.get("spec") or {}) | {
            "expirationSeconds": answer["spec"]["expirationSeconds"]
        }
        _track(answer, asked, writer, _TOKEN_REQUEST)
    return answer_object(api, request, target.kind, answer, 201)
