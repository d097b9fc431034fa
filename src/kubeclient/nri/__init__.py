"""NRI: a container runtime (containerd, CRI-O) asks its plugins about every container it makes.

    plugin.py      what a plugin answers, and the connection of one plugin
    channel.py     the runtime's socket: two connections in one, each with ttRPC
    messages.py    the messages that we use

Facts: the framing and the services are those of github.com/containerd/nri (v1alpha1) and of
github.com/containerd/ttrpc.
"""
