"""All cases and cells of the matrix."""

from __future__ import annotations

from tests.security_matrix.case import Case, Cell, cells
from tests.security_matrix.cases import cluster, controllers, groups, records, shares, tokens, topics, transactions
from tests.security_matrix.principals import PRINCIPALS


def all_cases() -> list[Case]:
    """Every case of every API."""
    modules = (records, groups, shares, transactions, topics, cluster, tokens, controllers)
    return [case for module in modules for case in module.cases()]


def all_cells() -> list[Cell]:
    """Every cell, in order."""
    return list(cells(all_cases(), list(PRINCIPALS)))
