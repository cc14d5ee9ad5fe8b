"""Placement of chunks on satellites: torus, layouts of servers over satellites, window and uplink."""
