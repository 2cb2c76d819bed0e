"""Parquet through pyarrow: the same table as .csv, the header among the file's metadata."""

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

from dhn.files.table import Table
from dhn.memory import check_memory

_CELL = 8  # bytes of one decoded number


def load(path: Path) -> Table:
    """Columns of numbers as arrays, all others as text."""
    with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
        cells = file.metadata.num_rows * file.metadata.num_columns
        check_memory(_CELL * cells, "its columns")
        table = file.read()
    header = (table.schema.metadata or {}).get(b"dhn")
    columns = {name: _cells(table.column(name)) for name in table.column_names}
    return Table(columns, None if header is None else header.decode())


def save(path: Path, table: Table) -> None:
    """With checksums, so that damage is noticed."""
    arrays = {name: pyarrow.array(cells) for name, cells in table.columns.items()}
    metadata = {"dhn": table.header} if table.header is not None else None
    pyarrow.parquet.write_table(
        pyarrow.table(arrays, metadata=metadata), path, write_page_checksum=True
    )


def _cells(column: pyarrow.ChunkedArray) -> np.ndarray | list[str]:
    kind = pyarrow.types
    if kind.is_floating(column.type) or kind.is_integer(column.type):
        if column.null_count:
            column = column.cast(pyarrow.float64())
        return column.to_numpy()
    return ["" if x is None else str(x) for x in column.to_pylist()]
