"""The language of record filters: small, typed, without loops, and bounded in length and in work for each record.

``tokens`` splits a text, ``parsing`` makes a tree of it, ``evaluation`` makes a function of the tree that looks at one record.
There is no general language behind it: a filter comes from a browser.
"""
