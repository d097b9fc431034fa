"""Mutating and validating webhooks.

Mutating webhooks are called one after the other and see what those before them did; when one
changed the object, those that asked for it (reinvocationPolicy) are called once more. Validating
webhooks are called at the same time and see the final object.
"""

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

from kubeclient.objects import Obj
from kubeclient.turns import Turns
from localkube.apiserver.admission.admission_review import (
    InvalidReview,
    Verdict,
    admission_request,
    review,
    review_version,
    verdict_of,
)
from localkube.apiserver.admission.attributes import (
    Attributes,
    ClusterView,
    PatientView,
    refusal,
)
from localkube.apiserver.admission.versions import Convert, Versions
from localkube.apiserver.admission.webhook_client import NotReached
from localkube.apiserver.admission.webhook_conditions import ConditionError, Conditions
from localkube.apiserver.admission.webhook_config import Callee, Webhook, webhooks_of
from localkube.apiserver.admission.webhook_match import (
    Invocation,
    invocation_of,
    is_exempt,
)
from localkube.apiserver.judges import Judges
from localkube.apiserver.kinds import Kind, Kinds
from localkube.apiserver.patch.json_patch import apply_json_patch
from localkube.apiserver.status import ApiError, bad_request, failure, too_many_requests
from localkube.apiserver.waiting import within_a_task

log = logging.getLogger(__name__)

_MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
_VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"

# Types checked and defaults applied, in place, as for a body; may raise ApiError.
Complete: TypeAlias = Callable[[Obj, Kind], None]


# As long as kube-apiserver gives a whole request; one webhook has at most half of it.
_ALL_OF_THEM_S = 60.0
# Writes that wait for one webhook: half of those that the server takes (security/limits.py).
MOST_WAITING = 200

_T = TypeVar("_T")


class Client(Protocol):
    async def post(
        self, callee: Callee, document: Obj, cluster: ClusterView, read: Callable[[Any], _T]
    ) -> _T: ...

    async def close(self) -> None: ...


class _Failed(Exception):
    """The call did not work; failurePolicy says what that means."""


@dataclass(frozen=True, slots=True)
class Round:
    """The result of calling all mutating webhooks once."""

    changed: bool = False
    again: frozenset[Webhook] = frozenset()  # want to see what was changed after them
    reinvocable: frozenset[Webhook] = frozenset()  # would want to, if something were


_NOTHING_DONE = Round()


class Webhooks:
    def __init__(
        self,
        cluster: PatientView,
        kinds: Kinds,
        complete: Complete,
        client: Client,
        convert: Convert,
        judges: Judges,
    ) -> None:
        self._cluster = cluster
        self._kinds = kinds
        self._complete = complete
        self._client = client
        self._versions = Versions(convert)
        self._judges = judges
        self._conditions = Conditions(judges)
        self._parsed: dict[str, tuple[Sequence[Obj], tuple[Webhook, ...]]] = {}
        self._waiting: Counter[tuple[str, str]] = Counter()  # by configuration and webhook

    async def mutate(self, attributes: Attributes) -> Round:
        """Changes `attributes.obj` in place."""
        webhooks = await self._configured(_MUTATING, attributes)
        if not webhooks:
            return _NOTHING_DONE
        await within_a_task()
        async with _in_time():
            return await self._mutate_by_all(webhooks, attributes)

    async def _mutate_by_all(self, webhooks: Sequence[Webhook], attributes: Attributes) -> Round:
        changed, again, reinvocable = False, frozenset[Webhook](), set[Webhook]()
        turns = Turns()
        for webhook in webhooks:
            await turns.next()
            invocation = await self._invocation(webhook, attributes)
            if invocation is None:
                continue
            if await self._mutate_by(invocation, attributes):
                # Only webhooks that ran before this one have not seen its change.
                changed, again = True, frozenset(reinvocable)
            if webhook.reinvoked:
                reinvocable.add(webhook)
        return Round(changed, again, frozenset(reinvocable))

    async def mutate_again(self, attributes: Attributes, chosen: frozenset[Webhook]) -> None:
        configured = await self._configured(_MUTATING, attributes)
        webhooks = [each for each in configured if each in chosen]
        async with _in_time():
            for webhook in webhooks:
                invocation = await self._invocation(webhook, attributes)
                if invocation is not None:
                    await self._mutate_by(invocation, attributes)

    async def validate(self, attributes: Attributes) -> None:
        webhooks = await self._configured(_VALIDATING, attributes)
        if not webhooks:
            return
        invocations, turns = [], Turns()
        for webhook in webhooks:
            await turns.next()
            invocation = await self._invocation(webhook, attributes)
            if invocation is not None:
                invocations.append(invocation)
        if not invocations:
            return
        await within_a_task()
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._objection(each, attributes), name=each.webhook.name)
                for each in invocations
            ]
        for task in tasks:
            # The first one in the order of the configurations, not in time: the answer is always
            # the same.
            objection = task.result()
            if objection is not None:
                raise objection

    async def close(self) -> None:
        await self._client.close()

    async def _configured(self, resource: str, attributes: Attributes) -> tuple[Webhook, ...]:
        configurations = await self._cluster.listed(resource)
        if not configurations or is_exempt(attributes):
            return ()
        kept = self._parsed.get(resource)
        # The view returns the same list until a configuration changes.
        if kept is not None and kept[0] is configurations:
            return kept[1]
        webhooks = webhooks_of(configurations)
        self._parsed[resource] = configurations, webhooks
        return webhooks

    async def _invocation(self, webhook: Webhook, attributes: Attributes) -> Invocation | None:
        invocation = invocation_of(webhook, attributes, self._cluster, self._kinds)
        if invocation is None or not webhook.conditions:
            return invocation
        obj, old = await self._versions.of(attributes, invocation.kind)
        request = admission_request("", attributes, invocation.kind, None, None)
        del request["object"], request["oldObject"]
        variables = {"object": obj, "oldObject": old, "request": request}
        try:
            wanted = await self._conditions.hold(webhook.conditions, variables)
            return invocation if wanted else None
        except ConditionError as error:
            if webhook.ignores_failure:
                return None
            raise refusal(attributes, str(error)) from None

    async def _mutate_by(self, invocation: Invocation, attributes: Attributes) -> bool:
        """Calls one webhook. True if it has changed the object."""
        verdict = await self._verdict(invocation, attributes, mutating=True)
        if verdict is None or not verdict.patch:
            return False
        kind, name = invocation.kind, invocation.webhook.name
        obj, _ = await self._versions.of(attributes, kind)
        if obj is None or attributes.obj is None:
            tried = f'admission webhook "{name}" attempted to modify the object'
            raise _internal(f"{tried}, which is not supported for this operation")
        try:
            done = partial(self._done, attributes, verdict.is_long or attributes.is_long)
            patched = await done(lambda: apply_json_patch(obj, verdict.patch))
            new = await self._versions.converted(patched, kind, attributes.kind)
            await done(lambda: self._complete(new, attributes.kind))
        except ApiError as error:
            raise _internal(f'patch of admission webhook "{name}": {error}') from None
        if new == attributes.obj:
            return False
        # In place, because the caller and the plugins hold this very object.
        attributes.obj.clear()
        attributes.obj.update(new)
        return True

    async def _done(self, attributes: Attributes, is_long: bool, step: Callable[[], _T]) -> _T:
        if not is_long:
            return step()
        user = attributes.user.name if attributes.user is not None else ""
        return await self._judges.long_work.done(user, step)

    async def _objection(self, invocation: Invocation, attributes: Attributes) -> ApiError | None:
        """The refusal as a value: one webhook's refusal must not stop the calls of the others."""
        try:
            await self._verdict(invocation, attributes, mutating=False)
        except ApiError as error:
            return error
        return None

    async def _verdict(
        self, invocation: Invocation, attributes: Attributes, *, mutating: bool
    ) -> Verdict | None:
        """None when the call failed and failurePolicy is Ignore. Raises when the webhook denies."""
        webhook = invocation.webhook
        if attributes.dry_run and not webhook.dry_run_safe:
            raise bad_request(f'admission webhook "{webhook.name}" does not support dry run')
        try:
            verdict = await self._ask(invocation, attributes, mutating=mutating)
        except _Failed as error:
            text = f'failed calling webhook "{webhook.name}": {error}'
            if not webhook.ignores_failure:
                raise _internal(text) from None
            log.warning("webhook failed and is ignored", extra={"reason": text})
            return None
        attributes.warnings.extend(verdict.warnings)
        if not verdict.allowed:
            raise _denial(webhook.name, verdict.status)
        return verdict

    async def _ask(
        self, invocation: Invocation, attributes: Attributes, *, mutating: bool
    ) -> Verdict:
        webhook = invocation.webhook
        version = review_version(webhook.review_versions)
        if version is None:
            known = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
            raise _Failed(f"could not create admission objects: {known}")
        uid = str(uuid.uuid4())
        obj, old = await self._versions.of(attributes, invocation.kind)
        request = admission_request(uid, attributes, invocation.kind, obj, old)
        read = partial(verdict_of, uid=uid, version=version, mutating=mutating)
        try:
            with self._counted(webhook):
                return await self._client.post(
                    webhook.callee, review(version, request), self._cluster, read
                )
        except NotReached as error:
            raise _Failed(f"failed to call webhook: {error}") from None
        except InvalidReview as error:
            raise _Failed(str(error)) from None

    @contextmanager
    def _counted(self, webhook: Webhook) -> Iterator[None]:
        """Writes that wait are limited, and one webhook that never answers must not hold all."""
        name = webhook.configuration, webhook.name
        if self._waiting[name] >= MOST_WAITING:
            raise too_many_requests(
                f'{MOST_WAITING} writes wait for webhook "{webhook.name}", please try again later'
            )
        self._waiting[name] += 1
        try:
            yield
        finally:
            self._waiting[name] -= 1
            if not self._waiting[name]:
                del self._waiting[name]


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    """For webhooks that are called one after the other."""
    try:
        async with asyncio.timeout(_ALL_OF_THEM_S):
            yield
    except TimeoutError:
        why = "request did not complete within requested timeout - context deadline exceeded"
        raise failure(504, "Timeout", f"Timeout: {why}", details={}) from None


def _internal(text: str) -> ApiError:
    message = f"Internal error occurred: {text}"
    return failure(500, "InternalError", message, details={"causes": [{"message": text}]})


def _denial(name: str, status: Obj) -> ApiError:
    """The webhook's own status, made to be a refusal and to say whose it is."""
    why, reason = status.get("message"), str(status.get("reason") or "")
    explained = f": {why or reason}" if why or reason else " without explanation"
    code = status.get("code")
    details = status.get("details")
    return failure(
        code if isinstance(code, int) and 400 <= code < 600 else 400,
        reason,
        f'admission webhook "{name}" denied the request{explained}',
        details=details if isinstance(details, dict) else None,
    )
