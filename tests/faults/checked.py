"""The API server and the model side by side: what has happened, and whether both agree on it."""

from pathlib import Path
from typing import Any

from kubeclient.objects import Obj
from tests.faults import model
from tests.faults.in_process import Following, Served
from tests.faults.model import Change, Kind, Place, Selection, Thing


class Watching:
    def __init__(self, following: Following, selection: Selection, after: int) -> None:
        self.following = following
        self.selection = selection
        self.after = after  # the version that its changes begin after
        self.initial: list[model.Seen] = []
        self.earlier: list[Obj] = []  # heard before it was resumed


class Checked:
    def __init__(self, directory: Path, namespaces: tuple[str, ...], kind: Kind) -> None:
        self.kind = kind
        self.served = Served(directory, namespaces)
        self.things: dict[Place, Thing] = {}
        self.objects: dict[Place, Obj] = {}  # as the server has last shown them
        self.first: dict[Place, str] = {}  # the version that was there when it was made
        self.history: list[Change] = []
        self.watches: list[Watching] = []
        self.version = self.start = self.listed_version()
        self.follow(Selection(), {"resourceVersion": str(self.version)})

    def close(self) -> None:
        for watching in self.watches:
            self.served.stop(watching.following)
        self.served.close()

    def path(self, namespace: str = "", name: str = "", sub: str = "") -> str:
        collection = self.kind.path.format(f"/namespaces/{namespace}" if namespace else "")
        return "/".join(filter(None, (collection, name, sub)))

    def call(self, method: str, place: Place, body: Any = None, **more: Any) -> tuple[int, Obj]:
        return self.served.call(method, self.path(*place), body, **more)

    def listed_version(self) -> int:
        return model.version_of(self.served.call("GET", self.path())[1])

    # What has happened.

    def happened(self, place: Place, after: Thing | None) -> None:
        """One change, with a version greater than all before."""
        version = self.listed_version()
        self._take(place, after, version)
        code, obj = self.call("GET", place)
        if after is None:
            assert code == 404
        else:
            assert code == 200
            assert model.version_of(obj) == version
            assert model.seen(obj) == after
            self.objects[place] = obj

    def heard_of(self, place: Place, after: Thing | None, event: Obj) -> None:
        """One of several changes, by what a watcher was told."""
        self._take(place, after, model.heard(event)[2])
        if after is not None:
            assert model.seen(event["object"]) == after
            self.objects[place] = event["object"]

    def _take(self, place: Place, after: Thing | None, version: int) -> None:
        assert version > self.version
        self.history.append(Change(version, self.things.pop(place, None), after))
        self.version = version
        if after is None:
            del self.objects[place], self.first[place]
        else:
            self.things[place] = after
            self.first.setdefault(place, str(version))

    def nothing_happened(self, place: Place) -> None:
        """Not even a new version."""
        assert self.listed_version() == self.version
        code, obj = self.call("GET", place)
        assert (code, obj) == (200, self.objects[place]) if place in self.things else code == 404

    def updated(self, place: Place, code: int, wanted: Thing, *, dry_run: bool = False) -> None:
        """An update that no version or precondition stood against."""
        before = self.things[place]
        if before.grace_s is not None and not wanted.finalizers <= before.finalizers:
            assert code == 422  # no finalizer may be added to what is being deleted
            self.nothing_happened(place)
            return
        assert code == 200
        self.may_have_happened(place, wanted, dry_run=dry_run)

    def may_have_happened(self, place: Place, wanted: Thing, *, dry_run: bool) -> None:
        if dry_run or wanted == self.things[place]:
            self.nothing_happened(place)
        else:
            self.happened(place, None if model.is_finished(wanted) else wanted)

    # What must agree.

    def selected(self, selection: Selection) -> list[Place]:
        return sorted(p for p, thing in self.things.items() if selection.selects(thing))

    def follow(self, selection: Selection, query: dict[str, str]) -> Watching:
        path = self.path(selection.namespace)
        following = self.served.watch(path, selection.query() | query)
        watching = Watching(following, selection, int(query.get("resourceVersion") or self.version))
        self.watches.append(watching)
        return watching

    def check_list(self) -> None:
        code, listing = self.served.call("GET", self.path())
        assert code == 200
        assert model.version_of(listing) == self.version
        assert listing["items"] == [self.objects[place] for place in sorted(self.objects)]

    def check_watch(self, watching: Watching) -> None:
        changes = model.events(self.history, watching.selection, watching.after)
        wanted = watching.initial + changes
        self.served.wait_for(watching.following, len(wanted) - len(watching.earlier))
        events = watching.earlier + watching.following.events
        assert not watching.following.is_over
        assert [model.heard(event) for event in events] == wanted
        self._replay(watching, events)

    def _replay(self, watching: Watching, events: list[Obj]) -> None:
        """Whoever begins with what a list showed, and does as told, has what a list shows now."""
        selection = watching.selection
        known = set[Place]()
        if not watching.initial:
            known = model.selected_at(self.history, selection, watching.after)
        latest: dict[Place, Obj] = {}
        for event in events:
            kind, place, _ = model.heard(event)
            if kind == "BOOKMARK":
                continue
            assert (place in known) is (kind != "ADDED")
            (known.discard if kind == "DELETED" else known.add)(place)
            latest[place] = event["object"]
        assert sorted(known) == self.selected(selection)
        assert all(latest.get(p, self.objects[p]) == self.objects[p] for p in known)
