"""Two revisions of tidelog measured in turns on one machine, with a C limit between them: ``python -m bench.pair --help``."""
