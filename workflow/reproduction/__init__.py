"""What the scripts of the workflow share. The library does not depend on it."""
