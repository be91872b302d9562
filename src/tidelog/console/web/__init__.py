"""The console's HTTP: one table of routes, each with the right that it needs and the bounds of what it takes.

Starlette's requests and responses under uvicorn (the extra ``console``); what pages show comes from ``asking`` and ``reading``.
"""
