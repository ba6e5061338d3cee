"""Classical mechanisms: differential privacy, and publishing a table over a declared domain."""
