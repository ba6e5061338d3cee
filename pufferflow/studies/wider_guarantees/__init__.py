"""What wider guarantees cost, and what noise made for a narrow one gives away."""
