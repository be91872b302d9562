"""A ride-hailing company for a minute: `make demo`. Guide: docs/guide/demo.md."""
