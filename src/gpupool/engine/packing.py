"""Packing: the current policy, made again when the mix of pods has changed.

packing = Packing("residue")
packing.count(cluster, pod)                       each pod once, when it first asks for a node
decide(cluster, pod, packing.policy)

Prices of a policy (`policies/scarcity.py`) follow what is free and how much is refused, so they are
made again more often.
"""

from dataclasses import replace

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.filters.node_affinity import selected
from gpupool.engine.kinds import Kind
from gpupool.engine.open_cards import open_cards
from gpupool.engine.policies import POLICIES
from gpupool.engine.policies.mix import Mix, MixLearner, Wanted
from gpupool.engine.policies.policy import Floats, Ints
from gpupool.engine.policies.scarcity import (
    Machines,
    Market,
    accepted,
    market_of,
    prices_of,
)
from gpupool.engine.refusals import Refusals, overload
from gpupool.engine.shapes import MOST_SHAPES, Shape
from gpupool.engine.supply import free_of, knows_all, machines_of

_MOST_SIZES = 64  # different card sizes that a mix has
# Policies make tables: for each size as many entries as it has units, and as many again as the
# largest size has. A node whose unit is very small must not fill the memory.
_MOST_ENTRIES = 2**20
_MOST_SELECTIONS = 1024  # cached node selections
# A look at the prices for so many nodes and for so many kinds of pods: it takes longer the more
# there are, and each pod changes less.
_PRICED_NODES = 40
_PRICED_KINDS = 16

# What a kind of pods says about nodes and cards.
Selection = tuple[object, object, object]


class Packing:
    def __init__(self, name: str) -> None:
        self._mix = Mix()
        self.policy = POLICIES[name](self._mix)
        self._make = POLICIES[name]
        self._learner = MixLearner()
        self._models: dict[Selection, tuple[int, ...]] = {}
        self._demands: dict[Shape, Wanted] = {}  # what pods count as
        self._sizes: tuple[int, ...] = ()
        self._nodes_seen = -1  # position in `ClusterModel.node_changes`
        self._market: Market | None = None
        self._machines = Machines([], [], [], [], [])
        # Of each kind of pods: the number of its set of machines, from 1 (0: none), and what a pod
        # takes of it. The same again by the numbers of `ClusterModel.running`, for the kinds that
        # were seen there.
        self._places: dict[Kind, tuple[int, list[int]]] = {}
        self._asked: dict[Shape, int] = {}  # the first amount of each, 0 without a set
        self._seen: list[Kind | None] = []
        self._at: Ints = np.zeros(0, dtype=np.intp)
        self._amounts: Floats = np.zeros((0, 0))
        self._unpriced = 0  # pods since the last look at the prices
        self._priced_after = 0  # so many of them at least, by the number of nodes
        self._refusals = Refusals()
        self.overload = 1.0  # how many times as much is asked for as fits

    def count(self, cluster: ClusterModel, pod: PodRequest) -> None:
        if cluster.node_changes.position != self._nodes_seen:
            self._look_at_nodes(cluster)
        shape = cluster.shapes.of(pod)
        demand = self._demands.get(shape)
        if demand is None:
            demand = self._new_demand(cluster, shape)
        self._learner.count(demand)
        # A pod that waits for something else than room is not refused.
        if shape.kind.ask.cards and not (pod.unsupported or pod.waits_for):
            self._refusals.count(pod.uid, shape)
        self._unpriced += 1
        if self._learner.is_due:
            self._renew(cluster)
        elif (
            self._unpriced >= self._priced_after
            and self._unpriced >= len(cluster.running) // _PRICED_KINDS
        ):
            self._renew_prices(cluster)

    def _new_demand(self, cluster: ClusterModel, shape: Shape) -> Wanted:
        if len(self._demands) >= MOST_SHAPES:
            self._demands.clear()
        models = self._models_for(cluster, shape.kind)
        demand = self._demands[shape] = (shape.kind.ask, models)
        return demand

    def _forget_places(self) -> None:
        self._places.clear()
        self._asked.clear()
        self._seen.clear()

    def _look_at_nodes(self, cluster: ClusterModel) -> None:
        self._nodes_seen = cluster.node_changes.position
        self._priced_after = len(cluster) // _PRICED_NODES
        # The selections were made from node labels, which may have changed.
        self._models.clear()
        self._demands.clear()
        self._forget_places()
        sizes = card_sizes(cluster)
        # Only for new sizes: a new policy makes all cached costs useless, and a size that is gone
        # does no harm.
        if not set(sizes) <= set(self._sizes):
            self._renew(cluster)
        # A pool that had no nodes for a while may have some again.
        elif self._market is not None and not knows_all(self._market.machines, cluster):
            self._renew_market(cluster)

    def _renew(self, cluster: ClusterModel) -> None:
        self._sizes = card_sizes(cluster)
        self._mix = self._learner.mix(cards_of_model(cluster), self._sizes)
        self.policy = self._make(self._mix)
        self._renew_market(cluster)

    def _renew_market(self, cluster: ClusterModel) -> None:
        self._market = None
        self._forget_places()
        if self.policy.usable is not None:
            mix = replace(self._mix, cards_of_model=cards_of_model(cluster))
            machines = machines_of(cluster)
            if machines != self._machines:  # else those that know already what fits on them
                self._machines = machines
            self._market = market_of(mix, self._machines)
            self._renew_prices(cluster)

    def _renew_prices(self, cluster: ClusterModel) -> None:
        self._unpriced = 0
        market = self._market
        if market is None or not market.sets:
            return
        running = self._running(cluster, market)
        free = free_of(cluster, self.policy, market.machines, market.places)
        self._look_at_refusals(cluster, market, running)
        # While the cluster fills, nobody knows yet whether large pods will come again.
        keeps_places = self.overload > 1 and self._refusals.pods_leave
        prices = prices_of(market, running, free, self.overload, keeps_places=keeps_places)
        self.policy = replace(self.policy, prices=prices)

    def _look_at_refusals(self, cluster: ClusterModel, market: Market, running: Floats) -> None:
        def asked(shape: Shape) -> int:
            known = self._asked.get(shape)
            if known is None:
                place, amounts = self._place_of(cluster, market, shape.kind)
                known = self._asked[shape] = amounts[0] if place else 0
            return known

        self._refusals.look(cluster, asked, float(running[:, 0].sum()))
        cards = float(market.wanted[:, 0].sum())
        self.overload = overload(self._refusals.load(cards) if cards else 0.0)

    def _running(self, cluster: ClusterModel, market: Market) -> Floats:
        """(S, Z): what the pods hold that are bound to each set of machines."""
        counts, seen = cluster.running, self._seen
        seen.extend([None] * (len(counts.kinds) - len(seen)))
        new = [n for n, kind in enumerate(counts.kinds) if kind is not None and kind is not seen[n]]
        self._make_room(len(seen), len(market.sizes))
        for number in new:
            kind = seen[number] = counts.kinds[number]
            assert kind is not None
            self._at[number], self._amounts[:, number] = self._place_of(cluster, market, kind)
        pods = np.array(counts.pods)
        at, amounts = self._at[: len(pods)], self._amounts[:, : len(pods)] * pods
        # 0 is for kinds that are bound to no set of this market. Numbers without pods may still
        # lead beyond it, to a set of the market before.
        sets = len(market.sets) + 1
        return np.stack([np.bincount(at, row, sets)[1:sets] for row in amounts], axis=1)

    def _make_room(self, kinds: int, sizes: int) -> None:
        if len(self._at) < kinds or len(self._amounts) != sizes:
            at, amounts = self._at, self._amounts
            self._at = np.zeros(2 * kinds, dtype=np.intp)
            self._amounts = np.zeros((sizes, 2 * kinds))
            self._at[: len(at)] = at
            if len(amounts) == sizes:
                self._amounts[:, : len(at)] = amounts

    def _place_of(self, cluster: ClusterModel, market: Market, kind: Kind) -> tuple[int, list[int]]:
        found = self._places.get(kind)
        if found is None:
            bits = accepted(kind.ask, self._models_for(cluster, kind), market.machines)
            amounts = market.amounts(kind.ask, self._sizes[-1])
            found = self._places[kind] = (1 + market.sets.get(bits, -1), amounts)
        return found

    def _models_for(self, cluster: ClusterModel, kind: Kind) -> tuple[int, ...]:
        """The GPU models of the nodes and cards that the pods select; empty: any."""
        key = (kind.node_selector, kind.node_terms, kind.card_choice)
        if not kind.ask.cards or not any(key):
            return ()
        found = self._models.get(key)
        if found is None:
            if len(self._models) >= _MOST_SELECTIONS:
                self._models.clear()
            found = self._models[key] = _selected_models(cluster, kind)
        return found


def _selected_models(cluster: ClusterModel, kind: Kind) -> tuple[int, ...]:
    columns = cluster.columns
    nodes = np.flatnonzero(columns.present & columns.has_cards)
    chosen = nodes[selected(cluster, kind.node_selector, kind.node_terms, nodes)]
    if kind.card_choice is not None:
        chosen = chosen[open_cards(kind.card_choice, columns, chosen).any(axis=0)]
    models = np.unique(columns.model[chosen])
    if len(models) == len(np.unique(columns.model[nodes])):
        return ()
    return tuple(models.tolist())


def cards_of_model(cluster: ClusterModel) -> tuple[int, ...]:
    columns = cluster.columns
    cards = (columns.card_total > 1).sum(axis=0)
    counts = np.bincount(columns.model, weights=cards, minlength=len(cluster.models))
    return tuple(int(count) for count in counts)


def card_sizes(cluster: ClusterModel) -> tuple[int, ...]:
    """The different sizes of usable cards; only the most frequent if there are too many."""
    totals = cluster.columns.card_total
    sizes, counts = np.unique(totals[totals > 1], return_counts=True)
    chosen: list[int] = []
    for size in sizes[np.argsort(-counts, kind="stable")].tolist():
        wider = [*chosen, size]
        if len(wider) <= _MOST_SIZES and sum(wider) + len(wider) * max(wider) <= _MOST_ENTRIES:
            chosen = wider
    return tuple(sorted(chosen))
