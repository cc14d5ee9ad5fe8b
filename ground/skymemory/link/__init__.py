"""Packets between the ground and satellites: the native engine for bulk data, a Python control plane for the rest."""
