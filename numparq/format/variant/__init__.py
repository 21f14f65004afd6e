r"""VARIANT values (VariantEncoding.md): `encode` and `decode` of the binary encoding.

Shredded columns are reassembled in `numparq.to_pandas.variant`. These functions serve values kept as bytes, and groups
without the VARIANT annotation.

>>> from numparq import variant
>>> metadata, value = variant.encode({"a": [1, None]})
>>> metadata, value
(b'\x11\x01\x00\x01a', b'\x02\x01\x00\x00\x08\x03\x02\x00\x02\x03\x0c\x01\x00')
>>> variant.decode(metadata, value)
{'a': [1, None]}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numparq.util.lazy import lazy_names

if TYPE_CHECKING:
    from .decoder import decode
    from .encoder import encode

__all__ = ["decode", "encode"]

__getattr__, __dir__ = lazy_names(__name__, {"decode": "decoder", "encode": "encoder"})
