"""Columns of every type that Parquet has: read, or refused by name."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import io
import uuid
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from margrove.exceptions import InvalidDataError
from margrove.tables import describe_columns, read_table

N = 30
START = dt.datetime(2020, 1, 1)
DAYS = [START + dt.timedelta(days=k) for k in range(N)]


def file_of(column: Any) -> io.BytesIO:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"d": column, "a": np.arange(N) % 7}), buffer)
    buffer.seek(0)
    return buffer


class Length(pa.ExtensionType):
    """An extension type of numbers from another library."""

    def __init__(self) -> None:
        super().__init__(pa.float64(), "margrove.test.length")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: Any, serialized: bytes) -> Length:
        return cls()


READ = {
    "dictionary": (pa.array(["p", "q", "r"] * 10).dictionary_encode(), "category"),
    "decimal": (pa.array([decimal.Decimal(k) / 4 for k in range(N)]), "number"),
    "half": (pa.array(np.arange(N, dtype=np.float16)), "number"),
    "unsigned": (pa.array(np.arange(N, dtype=np.uint64) * 2**58), "number"),
    "truth": (pa.array([k % 2 == 0 for k in range(N)]), "number"),
    "date": (pa.array([day.date() for day in DAYS]), "date"),
    "nanoseconds": (pa.array(np.array(DAYS, dtype="datetime64[ns]")), "date"),
    "zone": (pa.array(DAYS, pa.timestamp("us", "Europe/Berlin")), "date"),
    "null": (pa.nulls(N), "constant"),
    "extension": (
        pa.ExtensionArray.from_storage(Length(), pa.array(np.arange(N, dtype=float))),
        "number",
    ),
}
REFUSED = {
    "list": pa.array([[1, 2]] * N),
    "fixed list": pa.array([[1.0, 2.0]] * N, pa.list_(pa.float64(), 2)),
    "struct": pa.array([{"k": 1}] * N),
    "map": pa.array([[("k", 1)]] * N, pa.map_(pa.string(), pa.int64())),
    "binary": pa.array([b"x"] * N),
    "uuid": pa.array([uuid.UUID(int=k).bytes for k in range(N)], pa.binary(16)),
}


@pytest.mark.parametrize("kind", READ)
def test_plain_values_are_read(kind) -> None:
    column, expected = READ[kind]
    first = describe_columns(read_table(file_of(column)).frame)[0]
    assert (first.name, first.type) == ("d", expected)


@pytest.mark.parametrize("kind", REFUSED)
def test_others_are_refused_by_name_unless_they_are_ignored(kind) -> None:
    with pytest.raises(InvalidDataError, match="column 'd' contains") as caught:
        read_table(file_of(REFUSED[kind]))
    assert "types={'d': 'ignored'}" in str(caught.value)
    assert "--type d=ignored" in caught.value.for_commands
    for given in ({"types": {"d": "ignored"}}, {"types": {"a": "number"}, "others": "ignored"}):
        frame = read_table(file_of(REFUSED[kind]), **given).frame
        assert frame.columns == ["d", "a"]
        assert frame["d"].null_count() == N
        assert frame["a"].to_list() == [k % 7 for k in range(N)]


def test_a_file_of_nothing_else_is_refused_all_the_same() -> None:
    buffer = io.BytesIO()
    pl.DataFrame({"d": [[1]] * N}).write_parquet(buffer)
    with pytest.raises(InvalidDataError, match="column 'd' contains list values"):
        read_table(io.BytesIO(buffer.getvalue()), types={"d": "ignored"})


def test_nested_json_may_be_ignored() -> None:
    data = b'{"d": [1], "a": 1}\n{"d": [2, 3], "a": 2}\n'
    with pytest.raises(InvalidDataError, match="'d' contains list values"):
        read_table(io.BytesIO(data))
    frame = read_table(io.BytesIO(data), types={"d": "ignored"}).frame
    assert frame["a"].to_list() == [1, 2]
    assert frame["d"].to_list() == [None, None]


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_encrypted_files(plaintext_footer, tmp_path) -> None:
    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class Keys(encryption.KmsClient):
        def wrap_key(self, key: bytes, master: str) -> bytes:
            return base64.b64encode(key)

        def unwrap_key(self, key: bytes, master: str) -> bytes:
            return base64.b64decode(key)

    factory = encryption.CryptoFactory(lambda _: Keys())
    settings = encryption.EncryptionConfiguration(
        footer_key="footer", column_keys={"column": ["a"]}, plaintext_footer=plaintext_footer
    )
    secret = factory.file_encryption_properties(encryption.KmsConnectionConfig(), settings)
    table = pa.table({"a": [1.0, 2.0], "y": ["p", "q"]})
    path = tmp_path / "secret.parquet"
    with pq.ParquetWriter(path, table.schema, encryption_properties=secret) as writer:
        writer.write_table(table)
    with pytest.raises(InvalidDataError, match=r"secret\.parquet is encrypted\. Decrypt it first"):
        read_table(path)
