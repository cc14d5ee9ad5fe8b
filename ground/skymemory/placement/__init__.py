"""Which satellite holds a chunk: torus, layouts of servers over satellites, window and uplink."""
