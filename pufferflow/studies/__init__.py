"""What a run shows: the paper's tables and figures, the studies beyond it, and the systems related to it.

Each study is one record (:class:`~pufferflow.studies.record.Study`): the jobs that make its tidy tables, tables and
figures, with title, caption and settings of what the report shows, and its claims. ``catalogue`` lists them; rules,
comparison and report loop over that list. A study is a folder with its record in ``study.py``, which imports nothing
heavy, and its work beside it, or one module where it is small.
"""
