"""The Redis gateway of the agent: keys of any bytes to values of any bytes, for clients that speak RESP."""
