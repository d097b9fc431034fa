"""Programs that run in containers in place of an image's own. Standard library only."""
