"""The demo: a prompt's cache goes up to the satellites and comes back."""
