"""Login by OpenID Connect: the authorization code flow with PKCE, for the provider that the users' file names.

``settings``, ``tickets`` and ``identity`` are pure; ``fetching`` is HTTP with bounds; ``provider`` asks one provider.
"""
