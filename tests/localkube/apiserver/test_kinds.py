from localkube.apiserver.kinds import Kind, Kinds, builtin_kinds

KINDS = Kinds(builtin_kinds())


def _kind(group: str, version: str, plural: str) -> Kind:
    found = KINDS.find(group, version, plural)
    assert found is not None
    return found


def test_pods_have_their_subresources_but_no_proxy() -> None:
    names = [sub.name for sub in _kind("", "v1", "pods").subresources]
    assert names == [
        "attach",
        "binding",
        "ephemeralcontainers",
        "eviction",
        "exec",
        "log",
        "portforward",
        "resize",
        "status",
    ]


def test_a_subresource_may_belong_to_another_group() -> None:
    eviction = _kind("", "v1", "pods").subresource("eviction")
    assert eviction is not None
    assert (eviction.group, eviction.version, eviction.kind) == ("policy", "v1", "Eviction")


def test_both_kinds_of_events_lie_in_one_place() -> None:
    assert _kind("events.k8s.io", "v1", "events").resource == _kind("", "v1", "events").resource


def test_autoscalers_are_stored_in_their_newest_version() -> None:
    assert _kind("autoscaling", "v1", "horizontalpodautoscalers").storage_version == "v2"


def test_only_kinds_that_count_generations_say_so() -> None:
    counting = {kind.plural for kind in KINDS if kind.has_generation}
    assert {"pods", "deployments", "jobs", "customresourcedefinitions"} <= counting
    assert not {"configmaps", "secrets", "nodes", "namespaces", "services"} & counting


def test_reviews_and_metrics_are_not_stored() -> None:
    virtual = {kind.plural for kind in KINDS if kind.virtual}
    assert {"bindings", "selfsubjectaccessreviews", "tokenreviews"} <= virtual
    assert _kind("metrics.k8s.io", "v1beta1", "pods").virtual
    assert not _kind("", "v1", "pods").virtual


def test_no_two_kinds_share_a_name() -> None:
    names = [(kind.group, kind.version, kind.plural) for kind in KINDS]
    assert len(set(names)) == len(names) == 63


def test_a_version_is_served_as_long_as_one_kind_has_it() -> None:
    kinds = Kinds(KINDS)
    storage = [kind for kind in kinds if (kind.group, kind.version) == ("storage.k8s.io", "v1")]
    for kind in storage:
        assert kinds.has_version("storage.k8s.io", "v1")
        kinds.add(kind)  # again: it is one kind
        kinds.remove(kind)
    assert not kinds.has_version("storage.k8s.io", "v1")
