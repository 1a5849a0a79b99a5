"""What all pages of the console share: login, sessions, forms, assets, rendering."""
