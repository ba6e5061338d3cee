"""What the scripts of the workflow share. The library underneath knows nothing of it."""
