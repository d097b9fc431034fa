"""Values and rules of the domain: cards, nodes, pods, quotas. Pure: no I/O."""
