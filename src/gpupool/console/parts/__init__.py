"""What pages are made of: tables, forms, actions. `templates/parts/` draws them."""
