"""Reviews and token requests: created, answered in place, never stored."""

from gpupool.contract.objects import Obj
from gpupool.localcluster.apiserver import status
from gpupool.localcluster.apiserver.api import Api
from gpupool.localcluster.apiserver.decode.body import read_any, read_object
from gpupool.localcluster.apiserver.kinds import Kind
from gpupool.localcluster.apiserver.patch.managed_fields import Writer, track_create
from gpupool.localcluster.apiserver.request import Answer, Request
from gpupool.localcluster.apiserver.routing import Target
from gpupool.localcluster.apiserver.schema.check import conform
from gpupool.localcluster.apiserver.schema.load import schema_of
from gpupool.localcluster.apiserver.security.access import Access, forbidden
from gpupool.localcluster.apiserver.security.node_creation import creation_refusal
from gpupool.localcluster.apiserver.security.reviews import Question, review
from gpupool.localcluster.apiserver.security.token_requests import answer_token_request
from gpupool.localcluster.apiserver.verbs.options import write_options
from gpupool.localcluster.apiserver.verbs.read import existing
from gpupool.localcluster.apiserver.verbs.representation import answer_object

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
    body = read_object(request.body, request.headers.get("content-type", ""), target.kind)
    request.warnings += conform(body, target.kind, api.schema(target.kind), options.validation)
    question = Question(
        body=body,
        user=request.user,
        namespace=target.namespace,
        authorizer=api.authorizer,
        authenticator=api.authenticator,
        now_s=api.clock(),
    )
    answer = review(target.kind.kind, question)
    if request.track_fields and target.kind.kind not in _UNTRACKED:
        writer = Writer(options.manager, api.stamp())
        _track(answer, answer["spec"], writer, target.kind)
    return answer_object(api, request, target.kind, answer, 201)


def _track(answer: Obj, spec: Obj, writer: Writer, kind: Kind) -> None:
    """Reviews are never stored, and yet they name the owners of their fields."""
    sent: Obj = {"metadata": {}, "spec": spec}
    track_create(sent, writer, kind, schema_of(kind.group, kind.version, kind.kind))
    answer["metadata"] = {**answer["metadata"], **sent["metadata"]}


async def token_request(api: Api, request: Request, target: Target) -> Answer:
    assert request.user is not None
    body = read_any(request.body, request.headers.get("content-type", ""))
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
