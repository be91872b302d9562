"""Refusals of the registry: HTTP status and error code as Confluent's clients know them, in our own words."""

from __future__ import annotations


class RegistryError(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


class InvalidSchema(Exception):
    """A schema that its format does not allow, or whose references lead nowhere."""


def not_found(what: str) -> RegistryError:
    """No such path."""
    return RegistryError(404, 404, f"There is nothing at {what}.")


def bad_request(why: str) -> RegistryError:
    """The body or a parameter cannot be read."""
    return RegistryError(400, 400, why)


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


def no_subject_compatibility(subject: str) -> RegistryError:
    return RegistryError(404, 40408, f"Subject '{subject}' has no compatibility level of its own.")


def no_subject_mode(subject: str) -> RegistryError:
    return RegistryError(404, 40409, f"Subject '{subject}' has no mode of its own.")


def incompatible(subject: str, reasons: list[str]) -> RegistryError:
    return RegistryError(409, 409, f"The schema is incompatible with earlier ones of '{subject}': {'; '.join(reasons)}")


def invalid_schema(why: str) -> RegistryError:
    return RegistryError(422, 42201, f"Invalid schema: {why}")


def invalid_version(version: str) -> RegistryError:
    return RegistryError(422, 42202, f"Version {version!r} is neither a number from 1 on nor 'latest'.")


def invalid_compatibility(level: object, levels: tuple[str, ...]) -> RegistryError:
    return RegistryError(422, 42203, f"Compatibility level {level!r} is none of {', '.join(levels)}.")


def invalid_mode(mode: object, modes: tuple[str, ...]) -> RegistryError:
    return RegistryError(422, 42204, f"Mode {mode!r} is none of {', '.join(modes)}.")


def not_permitted(why: str) -> RegistryError:
    return RegistryError(422, 42205, why)


def still_referenced(subject: str, version: int, ids: list[int]) -> RegistryError:
    return RegistryError(422, 42206, f"Version {version} of '{subject}' is referenced by the schemas {ids}.")
