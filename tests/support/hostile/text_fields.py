"""Files with a hostile text in one field; as a program, reads such files in all ways and prints what that touched."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sys
import tempfile
import warnings
import zoneinfo
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

import numparq
from support.files.builder import parse_file

PATHS = (
    "{0}",
    "dateutil/{0}",
    "dateutil/:{0}",
    "pytz/{0}",
    "../../../../../..{0}",
    "file://{0}",
    "http://127.0.0.1:9/evil",
)
MODULES = ("evil_module", "evil_module.Type", "dateutil/evil_module", "arrow.py_extension_type")
DTYPES = (
    "datetime64[ns, {0}]",
    "M8[ns, dateutil/{0}]",
    "datetime64[ns, dateutil/{0}]",
    "interval[datetime64[ns, dateutil/{0}], right]",
    "Sparse[datetime64[ns, dateutil/{0}]]",
    "timestamp[ns, tz=dateutil/{0}][pyarrow]",
    "period[{0}]",
    "evil_module[pyarrow]",
)
SYSTEMS = ("+init={0}:1", "+proj=longlat +nadgrids={0}", "projjson:{0}", 'GEOGCS["{0}"]', "EPSG:{0}")
TEXTS = (*PATHS, *MODULES, *DTYPES, *SYSTEMS)

# Field that holds the text -> how it is put there, given the parsed file.
FIELDS: dict[str, Callable[[Any, str], None]] = {
    "created_by": lambda file, text: setattr(file.footer, "created_by", text),
    "file_path of a column chunk": lambda file, text: setattr(file.footer.row_groups[0].columns[0], "file_path", text),
    "name of a column": lambda file, text: setattr(file.footer.schema[1], "name", text),
    "time zone by Arrow": lambda file, text: _set_arrow(file, _arrow_type("timestamp", text)),
    "extension type": lambda file, text: _set_arrow(file, _arrow_type("extension", text)),
    "metadata of pandas.period": lambda file, text: _set_arrow(file, _arrow_type("period", text)),
    "time zone by pandas": lambda file, text: _set_column(file, pandas_type="datetimetz", metadata={"timezone": text}),
    "numpy_type": lambda file, text: _set_column(file, numpy_type=text),
    "numpy_type of a zone": lambda file, text: _set_column(file, pandas_type="datetimetz", numpy_type=text),
    "zone in our note of a dtype": lambda file, text: _set_note(file, {"timestamp": "ns", "zone": text}),
    "our note of a dtype": lambda file, text: _set_note(file, text),
    "Arrow type in our note": lambda file, text: _set_note(file, {"arrow": text}),
    "dtype of our categories": lambda file, text: _set_note(file, {"categories": text, "ordered": False}),
    "zone in our note of a label": lambda file, text: _set_label(file, ["Timestamp", 0, "ns", text]),
    "zone of a datetime label": lambda file, text: _set_label(file, ["datetime", "2020-01-01", text]),
    "period in our note of a label": lambda file, text: _set_label(file, ["Period", 0, text]),
    "dtype in our note of a label": lambda file, text: _set_label(file, ["numpy", text, 0]),
    "zone of the column labels": lambda file, text: _set_labels(file, "datetimetz", metadata={"timezone": text}),
    "pandas_type of the column labels": lambda file, text: _set_labels(file, text),
    "numpy_type of the column labels": lambda file, text: _set_labels(file, "unicode", numpy_type=text),
    "dtype of interval labels": lambda file, text: _set_labels(file, "interval", numpy_type=text),
    "dtype of period labels": lambda file, text: _set_labels(file, "period", numpy_type=text),
    "index column": lambda file, text: _set_pandas(file, lambda document: document.update(index_columns=[text])),
    "attributes": lambda file, text: _set_pandas(file, lambda document: document.update(attributes={"a": text})),
    "CRS by GeoParquet": lambda file, text: _set_geo(file, text),
    "class of a Spark type": lambda file, text: _set_spark(file, text),
    "Spark's time zone": lambda file, text: _set_key(file, "org.apache.spark.timeZone", text),
}


def write_files(folder: Path, canary: str) -> Iterator[Path]:
    """Write a file for each field and text; `canary` is a path that no read may open."""
    frame = pd.DataFrame({"2020-01-01": pd.to_datetime([1, 2], unit="s", utc=True), "b": [b"", None], "c": [1, 2]})
    data = numparq.to_parquet(frame)
    for field, forge in FIELDS.items():
        for number, text in enumerate(TEXTS):
            file = parse_file(data)
            forge(file, text.format(canary))
            path = folder / f"{field} {number}.parquet"
            path.write_bytes(file.stored())
            yield path


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _set_key(file: Any, key: str, value: str) -> None:
    pairs = file.footer.key_value_metadata
    for pair in pairs:
        if _text(pair.key) == key:
            pair.value = value
            return
    pairs.append(type(pairs[0])(key=key, value=value))


def _set_pandas(file: Any, change: Callable[[Any], None]) -> None:
    document = json.loads(next(pair.value for pair in file.footer.key_value_metadata if _text(pair.key) == "pandas"))
    change(document)
    _set_key(file, "pandas", json.dumps(document))


def _set_column(file: Any, **entry: Any) -> None:
    _set_pandas(file, lambda document: document["columns"][0].update(entry))


def _set_note(file: Any, note: Any) -> None:
    _set_column(file, metadata={"numparq": note})


def _set_label(file: Any, note: Any) -> None:
    _set_column(file, metadata={"numparq_label": note})
    _set_labels(file, "unicode", metadata={"numparq": {"dtype": "object", "name": note}})


def _set_labels(file: Any, pandas_type: str, **level: Any) -> None:
    level = {"name": None, "numpy_type": "datetime64[ns]", "pandas_type": pandas_type, **level}
    _set_pandas(file, lambda document: document.update(column_indexes=[level]))


def _arrow_type(kind: str, text: str) -> Any:
    import pyarrow as pa

    if kind == "timestamp":
        return pa.field("", pa.timestamp("us", text))
    name, note = ("pandas.period", json.dumps({"freq": text})) if kind == "period" else (text, text)
    metadata = {"ARROW:extension:name": name, "ARROW:extension:metadata": note}
    return pa.field("", pa.int64(), metadata=metadata)


def _set_arrow(file: Any, field: Any) -> None:
    import pyarrow as pa

    fields = [field.with_name("2020-01-01"), pa.field("b", pa.binary()), field.with_name("c")]
    _set_key(file, "ARROW:schema", base64.b64encode(pa.schema(fields).serialize().to_pybytes()).decode())


def _set_geo(file: Any, text: str) -> None:
    notes = {"encoding": "WKB", "geometry_types": [], "crs": text}
    _set_key(file, "geo", json.dumps({"version": "1.1.0", "primary_column": "b", "columns": {"b": notes}}))


def _set_spark(file: Any, text: str) -> None:
    kind = {"type": "udt", "class": text, "pyClass": text, "serializedClass": text, "sqlType": "long"}
    fields = [{"name": "c", "type": kind, "nullable": True, "metadata": {}}]
    _set_key(file, "org.apache.spark.sql.parquet.row.metadata", json.dumps({"type": "struct", "fields": fields}))


# --- reading ----------------------------------------------------------------------------------------------------------


def read_in_all_ways(path: Path) -> None:
    """Read a file in each way that looks at its texts; errors do not matter here."""
    ways: list[Callable[[], Any]] = [
        lambda: numparq.read_parquet(path),
        lambda: numparq.read_parquet(path, dtype_backend="numpy_nullable"),
        lambda: repr(numparq.read_parquet(path, dtype_backend="pyarrow")),
        lambda: numparq.read_parquet(path, filters=[("2020-01-01", ">", "1970-01-01")]),
        lambda: numparq.read_parquet(path, on_error="skip"),
        lambda: numparq.read_parquet([path, path]),
        lambda: numparq.ParquetFile(path).to_arrow(),
        lambda: list(numparq.ParquetFile(path).iter_batches(batch_rows=1)),
        lambda: numparq.ParquetFile(path, external_files=True).read(),
        lambda: repr(numparq.ParquetFile(path).schema),
        lambda: numparq.verify(path),
        lambda: numparq.read_parquet(path, geometries="geopandas"),
        lambda: _read_spark_schema(path),
    ]
    for way in ways:
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            way()


def _read_spark_schema(path: Path) -> None:
    from numparq.spark.schema.row_metadata import read_row_metadata

    read_row_metadata(numparq.ParquetFile(path).key_value_metadata)


class Watch:
    """Audit hook that records what a read has no business with, while `file` is set."""

    def __init__(self) -> None:
        self.file: Path | None = None
        self.found: list[str] = []
        lists = os.environ.get("NUMPARQ_CACHE_DIR", ""), sys.prefix, sys.base_prefix, str(Path(numparq.__file__).parent)
        self._allowed = tuple(filter(None, (*lists, *zoneinfo.TZPATH)))

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        """Record opened files, imported modules of the file's choice, connections and processes."""
        if self.file is None:
            return
        if event == "open" and isinstance(args[0], (str, bytes)):
            path = os.path.normpath(os.fsdecode(args[0]))
            # With external_files=True, sibling files count as the file itself.
            suspect = not path.startswith((str(self.file.parent), *self._allowed))
        else:
            suspect = event == "import" and "evil" in args[0]
            suspect = suspect or event.startswith(("socket.connect", "socket.getaddrinfo", "subprocess", "os.system"))
        if suspect:
            self.found.append(f"{self.file.name}: {event} {args[0]!s:.200}")


def main(canary: str) -> None:
    """Print one line for each suspect event."""
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        paths = list(write_files(Path(folder), canary))
        read_in_all_ways(paths[0])  # imports what numparq, pandas and pyarrow load lazily
        sys.addaudithook(watch)
        for watch.file in paths:
            read_in_all_ways(watch.file)
        Path(canary).read_bytes()  # which the hook must see
        watch.file = None
    print(json.dumps(watch.found))


if __name__ == "__main__":
    main(sys.argv[1])
