"""The agent of a GPU node: finds its cards, publishes them, and offers them to the kubelet."""
