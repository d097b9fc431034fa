"""What may change or refuse a write after decoding: built-in plugins and webhooks."""
