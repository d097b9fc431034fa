"""Custom objects in the version that was asked for, by the CRD's webhook or by name alone."""
