"""Refusals: HTTP status and error code as Confluent's clients know them, in our own words."""

from __future__ import annotations

from collections.abc import Iterable

UNPROCESSABLE = 422


class RegistryError(Exception):
    """An answer other than 200. ``retry_after_s``: when the client may come again; 0 where that is not known."""

    def __init__(self, status: int, code: int, message: str, retry_after_s: int = 0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.status = status
        self.code = code
        self.message = message


class InvalidSchema(Exception):
    """A schema that its format does not allow, or whose references lead nowhere."""


def bad_request(why: str) -> RegistryError:
    """The body or a parameter cannot be read."""
    return RegistryError(400, 400, why)


def no_such_path(path: str) -> RegistryError:
    return RegistryError(404, 404, f"There is nothing at {path}.")


def unknown_field(name: str) -> RegistryError:
    """A body with a field that this request does not have."""
    return RegistryError(422, 422, f"The body has a field {name!r}, which is unknown here.")


def subject_not_found(subject: str) -> RegistryError:
    return RegistryError(404, 40401, f"Subject '{subject}' is not registered.")


def version_not_found(subject: str, version: object) -> RegistryError:
    return RegistryError(404, 40402, f"Subject '{subject}' has no version {version}.")


def schema_not_found(what: object) -> RegistryError:
    return RegistryError(404, 40403, f"Schema {what} is not registered.")


def subject_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(404, 40404, f"Subject '{subject}' is deleted already; permanent=true removes it for good.")


def subject_not_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(404, 40405, f"Subject '{subject}' must be deleted without permanent=true first.")


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(404, 40406, f"Version {version} of '{subject}' is deleted already; permanent=true removes it for good.")


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(404, 40407, f"Version {version} of '{subject}' must be deleted without permanent=true first.")


def no_own_config(subject: str) -> RegistryError:
    return RegistryError(404, 40408, f"Subject '{subject}' has no config of its own.")


def no_own_mode(subject: str) -> RegistryError:
    return RegistryError(404, 40409, f"Subject '{subject}' has no mode of its own.")


def incompatible(subject: str, messages: Iterable[str], code: int) -> RegistryError:
    """``code``: 409 up to 8.0.2 of Confluent's registry, 40901 since."""
    return RegistryError(409, code, f"The schema is incompatible with an earlier one of '{subject}': [{', '.join(messages)}]")


def invalid_schema(why: str) -> RegistryError:
    return RegistryError(422, 42201, f"Invalid schema: {why}")


def invalid_version(version: object) -> RegistryError:
    return RegistryError(422, 42202, f"Version {version!r} is neither a number from 1 to 2147483647 nor 'latest'.")


def invalid_level(level: object, levels: Iterable[str]) -> RegistryError:
    return RegistryError(422, 42203, f"Compatibility {level!r} is none of {', '.join(levels)}.")


def invalid_mode(mode: object, modes: Iterable[str]) -> RegistryError:
    return RegistryError(422, 42204, f"Mode {mode!r} is none of {', '.join(modes)}.")


def not_permitted(why: str) -> RegistryError:
    return RegistryError(422, 42205, why)


def still_referenced(subject: str, version: int, ids: Iterable[int]) -> RegistryError:
    return RegistryError(422, 42206, f"Version {version} of '{subject}' is referenced by the schemas {sorted(ids)}.")


def id_differs(wanted: int, there: str) -> RegistryError:
    return RegistryError(422, 42207, f"Id {wanted} cannot be taken: {there}.")


def invalid_subject(subject: str) -> RegistryError:
    return RegistryError(422, 42208, f"{subject!r} cannot be the name of a subject.")


def too_large(size: int, limit: int) -> RegistryError:
    return RegistryError(422, 42209, f"The schema has {size} bytes; {limit} are allowed.")


def invalid_rules(why: str) -> RegistryError:
    return RegistryError(422, 42210, f"Invalid rule set: {why}")


def context_not_empty(context: str) -> RegistryError:
    return RegistryError(422, 42211, f"Context '{context}' holds subjects.")


def store_failed(why: str) -> RegistryError:
    """The record was not written."""
    return RegistryError(500, 50001, f"The record could not be written: {why}")


def store_timed_out(why: str) -> RegistryError:
    """The outcome of a write is unknown."""
    return RegistryError(500, 50002, f"The outcome of the write is unknown: {why}")


def no_leader(why: str) -> RegistryError:
    return RegistryError(500, 50004, why)
