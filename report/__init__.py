"""A compiled program as one HTML file: what each kernel became at every level, why, and what bounds it."""
