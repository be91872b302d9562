"""Who may do what in the console: passwords, roles by name pattern, masks, and sessions. Pure but for ``passwords``' arithmetic.

The console asks the cluster as one user, its own; what a person may do there is decided here, under the API.
"""
