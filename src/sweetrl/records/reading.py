"""Reading record files: one record at a time, with file, line and field in every complaint."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from sweetrl.errors import DataError, one_line
from sweetrl.records.files import unreadable
from sweetrl.records.hub import on_disk
from sweetrl.records.surrogates import decode_json

T = TypeVar("T")

MAX_LINE_BYTES = 64 << 20
"""No record is this long; a longer line is some other kind of file."""

FIX_LINE = "fix or remove the line"
"""The next step, wherever a line is not what it should be."""

_FOREIGN = {
    b"\x1f\x8b": "is compressed with gzip; unpack it first, with gunzip",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd; unpack it first, with unzstd",
    b"PK\x03\x04": "is a zip archive; unpack it first, with unzip",
    b"PAR1": "is a Parquet file; write its rows as JSON, one object a line",
    b"\xff\xfe": "is UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "is UTF-16 text; save it as UTF-8",
}
"""The first bytes of files of other kinds, and the error message for each."""

_NUMBER = re.compile(rb"[:\[,]\s*-?(?:NaN|Infinity)\b")
"""As Python's own `json` writes numbers that JSON does not have."""


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The non-blank lines of a file with their numbers, counted from 1."""
    try:
        with on_disk(path).open("rb") as file:
            number = 0
            while line := file.readline(MAX_LINE_BYTES):
                number += 1
                if number == 1:
                    refuse_foreign(path, line)
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if len(line) == MAX_LINE_BYTES:
                    raise DataError("line too long: this is not a file of JSON lines", path=path, line=number)
                if line and not line.isspace():
                    yield number, line
    except OSError as error:
        raise unreadable(path, error) from error


def refuse_foreign(path: Path, first: bytes) -> None:
    """Stop if the first bytes of a file are those of a kind that is no text of lines."""
    for beginning, what in _FOREIGN.items():
        if first.startswith(beginning):
            raise DataError(what, path=path)


class LineDecoder(Generic[T]):
    """Decodes one line into a record; says file, line and field when it cannot."""

    def __init__(self, record_type: type[T], path: Path) -> None:
        self._type = record_type
        self._decoder = msgspec.json.Decoder(record_type)
        self._path = path

    def __call__(self, number: int, line: bytes) -> T:
        """The record in `line`, which is line `number` of the file, counted from 1."""
        try:
            return decode_json(self._decoder, line)
        except msgspec.ValidationError as error:
            message = _wrong_schema(self._type, line) or f"{one_line(error)}; {FIX_LINE}"
            raise DataError(message, path=self._path, line=number) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(_not_json(line, error), path=self._path, line=number) from None


def _not_json(line: bytes, error: Exception) -> str:
    """The error message for a line that cannot be read at all."""
    why = ""
    if line.strip() in (b"{", b"["):
        why = " (each record must be one line)"
    elif not line.endswith(b"\n"):
        why = " (the line has no end: was the file cut off?)"
    elif _NUMBER.search(line):
        why = " (NaN and Infinity are not JSON; write null or a number)"
    return f"not valid JSON: {one_line(error)}{why}; {FIX_LINE}"


def read_records(path: Path, record_type: type[T]) -> Iterator[T]:
    """The records of a file, one at a time. A file without any is an error."""
    decode = LineDecoder(record_type, path)
    empty = True
    for number, line in read_lines(path):
        empty = False
        yield decode(number, line)
    if empty:
        raise DataError("has no records; give a file that has some", path=path)


class _Schema(Struct):
    """The field that all our records share."""

    schema: str | None = None


def _wrong_schema(record_type: object, line: bytes) -> str | None:
    """The error message for a line with another schema than `record_type`; None if its schema is right."""
    wanted = _schema_of(record_type)
    try:
        found = msgspec.json.decode(line, type=_Schema).schema
    except msgspec.DecodeError:
        return None
    return None if wanted is None or found is None or found == wanted else wrong_schema(found, wanted)


def wrong_schema(found: str, wanted: str) -> str:
    """The error message for a record of another schema than `wanted`."""
    if found.partition("/")[0] == wanted.partition("/")[0]:
        return f"written by another version of sweetrl: schema {found}, this one reads {wanted}; make it anew"
    return f"a record of schema {found}, where {wanted} was expected; is it the right file?"


def _schema_of(record_type: object) -> str | None:
    if not (isinstance(record_type, type) and issubclass(record_type, Struct)):
        return None
    return next((field.default for field in fields(record_type) if field.name == "schema"), None)


def read_json(path: Path, expected: type[T], what: str) -> T:
    """The one JSON value in a file of ours; the error message calls it `what`."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=expected)
    except OSError as error:
        raise unreadable(path, error) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"not {what}: {one_line(error)}", path=path) from None
