"""Request bodies into objects: JSON, YAML, protobuf."""
