"""Encrypted files against plain ones: a full read, a look-up in an open file, a write."""

from collections.abc import Callable

import numpy as np
import pandas as pd

import numparq
from asv_benchmarks.environment import CLOCK, REPEAT, SCALE, THREADS
from asv_benchmarks.tables import lineitem

FOOTER_KEY, FIRST_KEY, SECOND_KEY = (bytes([number]) * 16 for number in (1, 2, 3))
ROWS = 1_000_000
COLUMNS = ["orderkey", "quantity", "comment"]


def column_keys(frame: pd.DataFrame) -> dict[str, bytes]:
    """Return two keys for the columns in turn."""
    return {name: (FIRST_KEY, SECOND_KEY)[at % 2] for at, name in enumerate(frame.columns)}


MODES: dict[str, Callable[[pd.DataFrame], numparq.Encryption | None]] = {
    "plain": lambda frame: None,
    "gcm": lambda frame: numparq.Encryption(FOOTER_KEY, column_keys(frame)),
    "two-columns": lambda frame: numparq.Encryption(FOOTER_KEY, {"comment": FIRST_KEY, "quantity": SECOND_KEY}),
    "ctr": lambda frame: numparq.Encryption(FOOTER_KEY, column_keys(frame), algorithm="AES_GCM_CTR_V1"),
    "plaintext-footer": lambda frame: numparq.Encryption(FOOTER_KEY, column_keys(frame), plaintext_footer=True),
    "aes-256": lambda frame: numparq.Encryption(2 * FOOTER_KEY, dict.fromkeys(frame.columns, 2 * FIRST_KEY)),
}


class Encryption:
    """The same rows plain and encrypted, in memory; ratios are those of best times, in turns with the plain file."""

    params = tuple(MODES)
    param_names = ("mode",)
    number = 1
    warmup_time = 0.0
    timeout = 600.0

    def setup(self, mode: str) -> None:
        size = max(int(ROWS * SCALE), 1000)
        self.frame = lineitem(np.random.default_rng(5), size).to_pandas()
        self.encryption = MODES[mode](self.frame)
        self.decryption = None
        if self.encryption is not None:
            keys = self.encryption.file_keys([(name,) for name in self.frame.columns])
            columns = {
                name: leaf.key.value
                for name, leaf in zip(self.frame.columns, keys.leaves, strict=True)
                if leaf is not None
            }
            self.decryption = numparq.Decryption(keys.footer.key.value, columns)
        self.plain = numparq.to_parquet(self.frame)
        self.data = numparq.to_parquet(self.frame, encryption=self.encryption)
        self.key = int(self.frame["orderkey"].iloc[size // 2])
        self.file = numparq.ParquetFile(self.data, decryption=self.decryption)
        self.plain_file = numparq.ParquetFile(self.plain)

    def _read(self, data: bytes, decryption: numparq.Decryption | None) -> pd.DataFrame:
        return numparq.read_parquet(data, decryption=decryption, threads=THREADS)

    def _look_up(self, file: numparq.ParquetFile) -> pd.DataFrame:
        return file.read(COLUMNS, filters=numparq.col("orderkey") == self.key, threads=THREADS)

    def time_read(self, mode: str) -> None:
        self._read(self.data, self.decryption)

    def time_look_up(self, mode: str) -> None:
        self._look_up(self.file)

    def time_write(self, mode: str) -> None:
        numparq.to_parquet(self.frame, encryption=self.encryption, threads=THREADS)

    def track_read_over_plain(self, mode: str) -> float:
        return _ratio(lambda: self._read(self.data, self.decryption), lambda: self._read(self.plain, None))

    def track_look_up_over_plain(self, mode: str) -> float:
        return _ratio(lambda: self._look_up(self.file), lambda: self._look_up(self.plain_file))

    def track_write_over_plain(self, mode: str) -> float:
        return _ratio(
            lambda: numparq.to_parquet(self.frame, encryption=self.encryption, threads=THREADS),
            lambda: numparq.to_parquet(self.frame, threads=THREADS),
        )


def _ratio(first: Callable[[], object], second: Callable[[], object]) -> float:
    """Return the best time of the first call over that of the second, taken in turns."""
    best = [float("inf")] * 2
    for _ in range(max(REPEAT, 2)):
        for at, call in enumerate((first, second)):
            start = CLOCK()
            call()
            best[at] = min(best[at], CLOCK() - start)
    return best[0] / best[1]
