"""Edge: the kubelet's gRPC APIs for device plugins (v1beta1) and pod resources (v1), both sides."""
