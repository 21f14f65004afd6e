"""References for text kernels over str and bytes objects."""

from __future__ import annotations


def encode_strings(values):
    """Return each value's bytes, None for nulls; an exception class for invalid values."""
    found = []
    for value in values:
        if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
            found.append(None)
        elif isinstance(value, str):
            found.append(value.encode("utf-8"))
        else:
            found.append(bytes(value))
    return found


def split_strings(data, offsets, validity):
    """Return the kernels' output in the same form."""
    whole = data.tobytes()
    assert offsets[0] == 0
    assert offsets[-1] == len(whole)
    ends = offsets.tolist()
    return [
        whole[start:end] if there else None
        for start, end, there in zip(ends[:-1], ends[1:], validity.tolist(), strict=True)
    ]
