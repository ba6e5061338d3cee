"""Modules that the scripts of the workflow share; the library does not depend on them."""
