"""Keys of the links between hosts and satellites, as the ground holds, derives, stores and carries them."""
