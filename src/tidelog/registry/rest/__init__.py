"""Confluent's REST API without HTTP: a request goes in as method, path, query and body, an ``Outcome`` comes out.

``routing`` finds what serves a path, ``subjects``, ``schemas`` and ``settings_routes`` serve it. All errors are RegistryError.
"""
