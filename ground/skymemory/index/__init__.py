"""What is believed to be cached: the local radix index over chains of block keys."""
