"""How do many rows get in fast and exactly? COPY in binary form, which keeps every bit of every float."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import psycopg
from psycopg import sql
from sqlalchemy.orm import Session

_HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
_TRAILER = b"\xff\xff"


def copy_binary(session: Session, table: str, columns: Sequence[str], pieces: Iterable[bytes]) -> None:
    """COPY rows that are in Postgres's binary form already, without header and trailer.

    Args:
        table: Name of a table.
        columns: Its columns, in the order of the fields.
        pieces: Whole rows.
    """
    session.flush()
    driver = cast("psycopg.Connection[Any]", session.connection().connection.driver_connection)
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
        sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    with driver.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(_HEADER)
        for piece in pieces:
            copy.write(piece)
        copy.write(_TRAILER)


def copy_rows(session: Session, table: str, columns: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> None:
    """COPY rows into a table inside the session's transaction.

    Args:
        table: Name of a table or temporary table.
        columns: Column name to Postgres type, in the order of each row's values.
        rows: The values.
    """
    session.flush()
    driver = cast("psycopg.Connection[Any]", session.connection().connection.driver_connection)
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
        sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    with driver.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(list(columns.values()))
        for row in rows:
            copy.write_row(row)
