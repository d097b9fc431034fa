"""The devices of nodes, as device plugins offer them: registration, counting, allocation."""
