"""From a table of somebody's records to a private histogram, and what to know before: see the commands.

``states`` and ``records`` turn a table into states in time, ``fitting`` those into a public chain, ``release`` into
a private histogram; ``planning`` says beforehand how large its error will be.
"""
