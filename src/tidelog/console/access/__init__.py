"""Rights in the console: passwords, roles by name pattern, masks, and sessions. Pure but for the arithmetic of ``passwords``.

The console asks the cluster as one user, its own; what a person may do there is decided here, under the API.
"""
