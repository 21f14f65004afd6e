"""numparq reads and writes Apache Parquet for people who work in pandas.

>>> import io, pandas, numparq
>>> buffer = io.BytesIO()
>>> pandas.DataFrame({"a": [1, 2, 3]}).to_parquet(buffer)
>>> numparq.read_parquet(buffer)
   a
0  1
1  2
2  3
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .util.lazy import lazy_names
from .util.version import __version__ as __version__

if TYPE_CHECKING:
    from . import pandas as pandas
    from . import spark as spark
    from .api.read import read_parquet
    from .api.write import to_parquet
    from .crypto.part_prefix import PartPrefix
    from .dataset.dataset import Dataset
    from .dataset.prune.pruners import FilePruner
    from .dataset.write.dataset_writer import DatasetWriter
    from .errors import (
        CorruptPageError,
        DecryptionError,
        InvalidFileError,
        LimitError,
        ParquetError,
        SchemaError,
        UnsupportedError,
    )
    from .expr.column import col
    from .expr.runtime_filter import RuntimeFilter
    from .file.reader import ParquetFile, file_bytes
    from .file.writer import ParquetWriter
    from .format import variant as variant
    from .io.coalesce import Coalescing
    from .kernels.kernel_groups import warmup
    from .keys.client import KmsClient
    from .keys.direct import Decryption
    from .keys.encryption import Encryption
    from .keys.kms_decryption import KmsDecryption
    from .keys.kms_encryption import KmsEncryption
    from .tools.rotate import rotate_master_keys
    from .tools.salvage.file import salvage
    from .tools.salvage.output import Salvaged
    from .tools.verify.deviations import Deviation
    from .tools.verify.file import verify
    from .util.byte_budget_cache import cache_info

__all__ = [
    "Coalescing",
    "CorruptPageError",
    "Dataset",
    "DatasetWriter",
    "Decryption",
    "DecryptionError",
    "Deviation",
    "Encryption",
    "FilePruner",
    "InvalidFileError",
    "KmsClient",
    "KmsDecryption",
    "KmsEncryption",
    "LimitError",
    "ParquetError",
    "ParquetFile",
    "ParquetWriter",
    "PartPrefix",
    "RuntimeFilter",
    "Salvaged",
    "SchemaError",
    "UnsupportedError",
    "cache_info",
    "col",
    "file_bytes",
    "read_parquet",
    "rotate_master_keys",
    "salvage",
    "to_parquet",
    "verify",
    "warmup",
]

# Module of each public name, imported on first use, so that `import numparq` stays cheap.
_MODULE_OF = {
    "read_parquet": "api.read",
    "to_parquet": "api.write",
    "file_bytes": "file.reader",
    "ParquetWriter": "file.writer",
    "Dataset": "dataset.dataset",
    "DatasetWriter": "dataset.write.dataset_writer",
    "FilePruner": "dataset.prune.pruners",
    "ParquetFile": "file.reader",
    "verify": "tools.verify.file",
    "rotate_master_keys": "tools.rotate",
    "salvage": "tools.salvage.file",
    "Salvaged": "tools.salvage.output",
    "Deviation": "tools.verify.deviations",
    "warmup": "kernels.kernel_groups",
    "cache_info": "util.byte_budget_cache",
    "col": "expr.column",
    "RuntimeFilter": "expr.runtime_filter",
    "Coalescing": "io.coalesce",
    "Decryption": "keys.direct",
    "Encryption": "keys.encryption",
    "PartPrefix": "crypto.part_prefix",
    "KmsClient": "keys.client",
    "KmsDecryption": "keys.kms_decryption",
    "KmsEncryption": "keys.kms_encryption",
    "ParquetError": "errors",
    "InvalidFileError": "errors",
    "CorruptPageError": "errors",
    "UnsupportedError": "errors",
    "DecryptionError": "errors",
    "SchemaError": "errors",
    "LimitError": "errors",
}
# Public modules. Not in `__all__`: a star import must not shadow pandas.
_PUBLIC_MODULES = {"pandas": "pandas", "spark": "spark", "variant": "format.variant"}


__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF, _PUBLIC_MODULES)
