"""What the HTTP servers of the package share: those of the console and of the registry, which run on uvicorn."""
