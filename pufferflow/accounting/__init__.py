"""What releases of one population cost together: the account, its file, and other mechanisms."""
