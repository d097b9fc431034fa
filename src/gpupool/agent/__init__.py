"""Program: a node's cards -> its labels, its inventory, its device plugins, and how they are."""
