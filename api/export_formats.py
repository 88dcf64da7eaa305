"""How do rows become a file while they come? CSV, JSON lines and Parquet, batch by batch, each float to the bit.

NaN and infinities are the words NaN, Infinity and -Infinity in text, and themselves in Parquet. An absent value is an
empty field, null, or null.
"""

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import pyarrow as pa
from pyarrow import parquet

Kind = Literal["text", "integer", "float", "boolean"]
Columns = Mapping[str, Sequence[Any]]
Schema = Mapping[str, Kind]

_ARROW = {"text": pa.string(), "integer": pa.int64(), "float": pa.float64(), "boolean": pa.bool_()}


class Writer(Protocol):
    """Turns batches of equal columns into pieces of a file."""

    def begin(self) -> bytes: ...
    def batch(self, columns: Columns) -> bytes: ...
    def end(self) -> bytes: ...


@dataclass(frozen=True)
class Format:
    """A kind of file."""

    media_type: str
    writer: type["_Csv | _Lines | _Parquet"]


def pieces(writer: Writer, batches: Iterable[Columns]) -> Iterator[bytes]:
    """The file, piece by piece."""
    yield writer.begin()
    for columns in batches:
        yield writer.batch(columns)
    yield writer.end()


class _Csv:
    def __init__(self, schema: Schema, provenance: Mapping[str, Any]) -> None:
        self._schema = schema

    def begin(self) -> bytes:
        return self._text([list(self._schema)])

    def batch(self, columns: Columns) -> bytes:
        shown = [_shown(columns[name], kind, quoted=False) for name, kind in self._schema.items()]
        return self._text(zip(*shown, strict=True))

    def end(self) -> bytes:
        return b""

    def _text(self, rows: Iterable[Iterable[Any]]) -> bytes:
        stream = io.StringIO(newline="")
        csv.writer(stream, lineterminator="\n").writerows(rows)
        return stream.getvalue().encode()


class _Lines:
    def __init__(self, schema: Schema, provenance: Mapping[str, Any]) -> None:
        self._schema = schema

    def begin(self) -> bytes:
        return b""

    def batch(self, columns: Columns) -> bytes:
        names = [json.dumps(name) for name in self._schema]
        shown = [_shown(columns[name], kind, quoted=True) for name, kind in self._schema.items()]
        rows = zip(*shown, strict=True)
        return "".join("{" + ",".join(map(":".join, zip(names, row, strict=True))) + "}\n" for row in rows).encode()

    def end(self) -> bytes:
        return b""


class _Parquet:
    def __init__(self, schema: Schema, provenance: Mapping[str, Any]) -> None:
        fields = [pa.field(name, _ARROW[kind]) for name, kind in schema.items()]
        said = {"rotbench": json.dumps(provenance, allow_nan=False)}
        self._schema = pa.schema(fields, metadata=said)
        self._sink = io.BytesIO()
        self._writer = parquet.ParquetWriter(_Drained(self._sink), self._schema, compression="zstd")

    def begin(self) -> bytes:
        return self._drain()

    def batch(self, columns: Columns) -> bytes:
        arrays = [pa.array(columns[field.name], type=field.type, from_pandas=False) for field in self._schema]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        return self._drain()

    def end(self) -> bytes:
        self._writer.close()
        return self._drain()

    def _drain(self) -> bytes:
        piece = self._sink.getvalue()
        self._sink.seek(0)
        self._sink.truncate()
        return piece


class _Drained:
    """A file that says how much was ever written, though what was written is taken away."""

    def __init__(self, sink: io.BytesIO) -> None:
        self._sink = sink
        self._written = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        self._written += len(data)
        return self._sink.write(data)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


FORMATS = {
    "csv": Format("text/csv; charset=utf-8", _Csv),
    "json": Format("application/x-ndjson", _Lines),
    "parquet": Format("application/vnd.apache.parquet", _Parquet),
}


def _shown(values: Sequence[Any], kind: Kind, *, quoted: bool) -> list[str]:
    """A column as text; quoted as in JSON."""
    absent = "null" if quoted else ""
    if kind == "float":
        return [absent if value is None else _number(value, quoted) for value in _plain(values)]
    if kind == "boolean":
        return [absent if value is None else "true" if value else "false" for value in values]
    if kind == "integer":
        return [absent if value is None else str(value) for value in _plain(values)]
    return [absent if value is None else json.dumps(value, ensure_ascii=False) if quoted else value for value in values]


def _plain(values: Any) -> Sequence[Any]:
    found: Sequence[Any] = values.tolist() if hasattr(values, "tolist") else values
    return found


def _number(value: float, quoted: bool) -> str:
    if math.isfinite(value):
        return repr(value)
    name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return f'"{name}"' if quoted else name
