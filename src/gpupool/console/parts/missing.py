"""NoSuchThing: what a page or an action raises when its object is not there."""


class NoSuchThing(Exception):
    """There is no object of that name. The text says which."""
