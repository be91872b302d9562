"""The registry at work: ``topic`` reads and writes ``_schemas`` through tidelog's client, ``replaying`` follows it, ``node``
serves requests in order, ``http`` is their ASGI application, ``users`` who may send them, ``running`` a whole registry."""
