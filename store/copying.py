"""How do many rows get in fast and exactly? COPY in binary form, which keeps every bit of every float."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import psycopg
from psycopg import sql
from sqlalchemy.orm import Session


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
