"""What a cluster is made of: cluster file, instance types, quotas."""
