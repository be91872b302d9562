"""Checks of ``make check`` that look at the whole tree: ``python -m tools.checks`` runs all, ``python -m tools.checks NAME`` one.

A check that the tree does not pass yet has a file in ``known/``, which lists what is still wrong and may only shrink.
``python -m tools.checks NAME --write`` rewrites that file, and refuses to make it larger.
"""
