"""Random requests against the API server and against a naive model: both must agree, always."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kubeclient.objects import Obj
from tests.faults import model
from tests.faults.checked import Checked
from tests.faults.model import Place, Selection, Wish

NAMESPACES = ("one", "two")
_LABELS: tuple[dict[str, str], ...] = ({}, {"a": "1"}, {"a": "2", "b": "1"}, {"b": "1"})
_FINALIZERS = ("example.com/f", "example.com/g")
DRY_RUN = {"dryRun": "All"}
OTHER_UID = "00000000-0000-4000-8000-000000000000"

places = st.tuples(st.sampled_from(NAMESPACES), st.sampled_from(("x", "y", "z")))
values = st.integers(0, 2)
wishes = st.builds(
    Wish,
    labels=st.sampled_from([frozenset(each.items()) for each in _LABELS]),
    finalizers=st.frozensets(st.sampled_from(_FINALIZERS)),
    value=values,
)
selections = st.builds(
    Selection,
    namespace=st.sampled_from(("", *NAMESPACES)),
    label=st.sampled_from(sorted(model.LABEL_SELECTORS)),
    name=st.sampled_from(("", "", "x")),
)
rarely = st.sampled_from((False, False, False, True))


class ApiServer(RuleBasedStateMachine):
    api: Checked

    @initialize(kind=st.sampled_from(sorted(model.KINDS)))
    def choose(self, kind: str) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self.api = Checked(Path(self._directory.name), NAMESPACES, model.KINDS[kind])

    def teardown(self) -> None:
        self.api.close()
        self._directory.cleanup()

    # Writes.

    @rule(place=places, wish=wishes, dry_run=rarely)
    def create(self, place: Place, wish: Wish, dry_run: bool) -> None:
        body = model.body(self.api.kind.name, place, wish)
        query = DRY_RUN if dry_run else {}
        code, answer = self.api.served.call("POST", self.api.path(place[0]), body, query=query)
        if place in self.api.things:
            assert (code, answer["reason"]) == (409, "AlreadyExists")
            self.api.nothing_happened(place)
            return
        assert code == 201
        made = model.seen(answer)
        assert made == model.new(self.api.kind, place, wish, made.uid, made.created)
        if dry_run:
            self.api.nothing_happened(place)
        else:
            self.api.happened(place, made)
            assert self.api.objects[place] == answer

    @rule(
        place=places,
        wish=wishes,
        version=st.sampled_from(("", "current", "first", "future")),
        other_uid=rarely,
        dry_run=rarely,
    )
    def replace(
        self, place: Place, wish: Wish, version: str, other_uid: bool, dry_run: bool
    ) -> None:
        query = DRY_RUN if dry_run else {}
        if place not in self.api.things:
            body = model.body(self.api.kind.name, place, wish)
            assert self.api.call("PUT", place, body, query=query)[0] == 404
            return
        body = model.replacement(self.api.objects[place], wish)
        current = body["metadata"].pop("resourceVersion")
        versions = {"": None, "current": current, "first": self.api.first[place]}
        if named := versions.get(version, str(self.api.version + 1000)):
            body["metadata"]["resourceVersion"] = named
        if other_uid:
            body["metadata"]["uid"] = OTHER_UID
        code, answer = self.api.call("PUT", place, body, query=query)
        if named not in (None, current) or other_uid:
            assert (code, answer["reason"]) == (409, "Conflict")
            self.api.nothing_happened(place)
        else:
            self.api.updated(
                place, code, model.changed(self.api.things[place], wish), dry_run=dry_run
            )

    @rule(place=places, wish=wishes, dry_run=rarely)
    def merge_patch(self, place: Place, wish: Wish, dry_run: bool) -> None:
        labels = dict.fromkeys(("a", "b")) | dict(wish.labels)
        body: Obj = {"metadata": {"labels": labels, "finalizers": sorted(wish.finalizers)}}
        if self.api.kind.name != "Pod":
            body |= model.value_patch(self.api.kind.name, wish.value)
        elif place in self.api.things:  # a merge patch would have to send the whole list
            wish = replace(wish, value=self.api.things[place].value)
        self.patch(place, body, "merge-patch", wish, dry_run)

    @rule(place=places, wish=wishes, dry_run=rarely)
    def strategic_patch(self, place: Place, wish: Wish, dry_run: bool) -> None:
        labels = dict.fromkeys(("a", "b")) | dict(wish.labels)
        metadata = {"labels": labels, "finalizers": sorted(wish.finalizers)}
        body = model.value_patch(self.api.kind.name, wish.value) | {"metadata": metadata}
        if place in self.api.things:  # it adds finalizers, and takes none away
            kept = self.api.things[place].finalizers
            wish = replace(wish, finalizers=wish.finalizers | kept)
        self.patch(place, body, "strategic-merge-patch", wish, dry_run)

    @rule(place=places, wish=wishes, tested=values, dry_run=rarely)
    def json_patch(self, place: Place, wish: Wish, tested: int, dry_run: bool) -> None:
        path, name = model.VALUE_PATHS[self.api.kind.name], self.api.kind.name
        body = [
            {"op": "test", "path": path, "value": model.value_json(name, tested)},
            {"op": "add", "path": "/metadata/labels", "value": dict(wish.labels)},
            {"op": "add", "path": "/metadata/finalizers", "value": sorted(wish.finalizers)},
            {"op": "replace", "path": path, "value": model.value_json(name, wish.value)},
        ]
        if place in self.api.things and self.api.things[place].value != tested:
            assert (
                self.api.call("PATCH", place, body, media="application/json-patch+json")[0] == 422
            )
            self.api.nothing_happened(place)
        else:
            self.patch(place, body, "json-patch", wish, dry_run)

    def patch(self, place: Place, body: object, media: str, wish: Wish, dry_run: bool) -> None:
        query = DRY_RUN if dry_run else {}
        media = f"application/{media}+json"
        code, _ = self.api.call("PATCH", place, body, query=query, media=media)
        if place not in self.api.things:
            assert code == 404
        else:
            self.api.updated(
                place, code, model.changed(self.api.things[place], wish), dry_run=dry_run
            )

    @rule(place=places, number=st.sampled_from(("1", "2")), value=values)
    def apply(self, place: Place, number: str, value: int) -> None:
        wish = Wish(frozenset({("a", number)}), frozenset(), value)
        body = model.body(self.api.kind.name, place, wish)
        how: Any = {"query": {"fieldManager": "applier", "force": "true"}}
        how["media"] = "application/apply-patch+yaml"
        code, answer = self.api.call("PATCH", place, body, **how)
        if place in self.api.things:
            assert code == 200
            before = self.api.things[place]
            others = frozenset(pair for pair in before.labels if pair[0] != "a")
            wish = Wish(wish.labels | others, before.finalizers, value)
            wanted = model.changed(before, wish)
            # Who applies what is there already becomes one of its owners: that is a change.
            if wanted != before or answer != self.api.objects[place]:
                self.api.happened(place, wanted)
        else:
            assert code == 201
            made = model.seen(answer)
            assert made == model.new(self.api.kind, place, wish, made.uid, made.created)
            self.api.happened(place, made)
        assert self.api.call("PATCH", place, body, **how) == (200, answer)
        self.api.nothing_happened(place)

    @precondition(lambda self: self.api.kind.name == "Deployment")
    @rule(place=places, observed=values)
    def report_status(self, place: Place, observed: int) -> None:
        body = {"status": {"observedGeneration": observed}, "spec": {"replicas": 9}}
        path, media = self.api.path(*place, "status"), "application/merge-patch+json"
        code, _ = self.api.served.call("PATCH", path, body, media=media)
        if place not in self.api.things:
            assert code == 404
        else:
            self.api.updated(place, code, replace(self.api.things[place], observed=observed))

    @precondition(lambda self: self.api.kind.name == "Deployment")
    @rule(place=places, value=values)
    def scale(self, place: Place, value: int) -> None:
        body = {"spec": {"replicas": value}}
        path, media = self.api.path(*place, "scale"), "application/merge-patch+json"
        code, _ = self.api.served.call("PATCH", path, body, media=media)
        if place not in self.api.things:
            assert code == 404
        else:
            thing = self.api.things[place]
            wish = Wish(thing.labels, thing.finalizers, value)
            self.api.updated(place, code, model.changed(thing, wish))

    @precondition(lambda self: self.api.kind.name == "Pod")
    @rule(place=places, node=st.sampled_from(("n1", "n2")), other_uid=rarely)
    def bind(self, place: Place, node: str, other_uid: bool) -> None:
        body: Obj = {"metadata": {"name": place[1]}, "target": {"kind": "Node", "name": node}}
        if other_uid:
            body["metadata"]["uid"] = OTHER_UID
        code, _ = self.api.served.call("POST", self.api.path(*place, "binding"), body)
        thing = self.api.things.get(place)
        if thing is None:
            assert code == 404
        elif thing.node or thing.grace_s is not None or other_uid:
            assert code == 409
            self.api.nothing_happened(place)
        else:
            assert code == 201
            self.api.happened(place, replace(thing, node=node, generation=thing.generation))

    @rule(
        place=places,
        policy=st.sampled_from(("", "", *model.POLICIES)),
        grace_s=st.sampled_from((None, None, 0, 5)),
        only=st.sampled_from(("", "", "", "uid", "version", "other uid", "other version")),
        dry_run=rarely,
    )
    def delete(
        self, place: Place, policy: str, grace_s: int | None, only: str, dry_run: bool
    ) -> None:
        metadata = self.api.objects.get(place, {}).get("metadata", {})
        preconditions = {
            "uid": {"uid": metadata.get("uid")},
            "version": {"resourceVersion": metadata.get("resourceVersion")},
            "other uid": {"uid": OTHER_UID},
            "other version": {"resourceVersion": "1"},
        }
        body: Obj = {"preconditions": preconditions.get(only), "gracePeriodSeconds": grace_s}
        body |= {"propagationPolicy": policy or None, "dryRun": ["All"] if dry_run else None}
        given = {key: value for key, value in body.items() if value is not None}
        code, _ = self.api.call("DELETE", place, given)
        if place not in self.api.things:
            assert code == 404
        elif only.startswith("other"):
            assert code == 409
            self.api.nothing_happened(place)
        else:
            wanted = model.deleted(self.api.things[place], policy, grace_s)
            assert code in (200, 202)
            self.api.may_have_happened(place, wanted, dry_run=dry_run)

    @rule(selection=selections)
    def delete_collection(self, selection: Selection) -> None:
        if not selection.namespace:
            return
        chosen = self.api.selected(selection)
        path, heard = self.api.path(selection.namespace), len(self.api.history)
        code, answer = self.api.served.call("DELETE", path, query=selection.query())
        assert code == 200
        assert [model.seen(item).place for item in answer["items"]] == chosen
        witness = self.api.watches[0]
        outcomes = {place: model.deleted(self.api.things[place], "", None) for place in chosen}
        changed = [place for place in chosen if outcomes[place] != self.api.things[place]]
        self.api.served.wait_for(witness.following, heard + len(changed) - len(witness.earlier))
        events = (witness.earlier + witness.following.events)[heard:]
        assert [model.heard(event)[1] for event in events] == changed
        for place, event in zip(changed, events, strict=True):
            wanted = outcomes[place]
            self.api.heard_of(place, None if model.is_finished(wanted) else wanted, event)

    # Reads and watches.

    @rule(selection=selections, limit=st.integers(1, 3))
    def list_in_pages(self, selection: Selection, limit: int) -> None:
        wanted = self.api.selected(selection)
        found: list[Place] = []
        query = selection.query() | {"limit": str(limit)}
        while True:
            code, page = self.api.served.call(
                "GET", self.api.path(selection.namespace), query=query
            )
            assert code == 200
            found += [model.seen(item).place for item in page["items"]]
            if not page["metadata"].get("continue"):
                break
            assert len(page["items"]) == limit
            query["continue"] = page["metadata"]["continue"]
        assert found == wanted

    @precondition(lambda self: len(self.api.watches) < 6)
    @rule(selection=selections, back=st.integers(0, 6))
    def watch_from(self, selection: Selection, back: int) -> None:
        """From a version in the past."""
        versions = [self.api.start, *(change.version for change in self.api.history)]
        version = versions[max(0, len(versions) - 1 - back)]
        self.api.follow(selection, {"resourceVersion": str(version)})

    @precondition(lambda self: len(self.api.watches) < 6)
    @rule(selection=selections, as_list=st.booleans())
    def watch_all(self, selection: Selection, as_list: bool) -> None:
        """From what there is now; `as_list`: and it says when that is over."""
        as_lists = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        as_lists["allowWatchBookmarks"] = "true"
        watching = self.api.follow(selection, as_lists if as_list else {})
        for place in self.api.selected(selection):
            watching.initial.append(("ADDED", place, model.version_of(self.api.objects[place])))
        if as_list:
            watching.initial.append(("BOOKMARK", ("", ""), self.api.version))

    @rule(chosen=st.integers(0, 5))
    def resume(self, chosen: int) -> None:
        """A client whose connection broke goes on from the last version that it has heard of."""
        watching = self.api.watches[chosen % len(self.api.watches)]
        self.api.served.stop(watching.following)
        watching.earlier += watching.following.events
        heard = [model.heard(event)[2] for event in watching.earlier]
        version = max([watching.after, *heard])
        query = watching.selection.query() | {"resourceVersion": str(version)}
        watching.following = self.api.served.watch(
            self.api.path(watching.selection.namespace), query
        )

    # What always holds.

    @invariant()
    def a_list_shows_every_object_as_it_was_last_written(self) -> None:
        self.api.check_list()

    @invariant()
    def every_watch_hears_every_change_once_and_in_order(self) -> None:
        for watching in self.api.watches:
            self.api.check_watch(watching)


def agrees(examples: int, steps: int, phases: Sequence[Phase]) -> None:
    how = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        phases=phases,
        suppress_health_check=[HealthCheck.too_slow],
    )
    run_state_machine_as_test(ApiServer, settings=how)


def test_whatever_is_asked_the_server_and_the_model_agree() -> None:
    # A failure is shown as it was found: to look for a shorter one takes minutes.
    agrees(examples=30, steps=40, phases=(Phase.explicit, Phase.reuse, Phase.generate))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_server_and_the_model_agree_for_long() -> None:
    agrees(examples=300, steps=100, phases=tuple(Phase))
