"""The four patch types and field ownership. All pure."""
