"""What text kernels make of str and bytes objects, by Python's own means."""

from __future__ import annotations


def encode_strings(values):
    """Give the bytes of each value, None for a null; an exception's class where a value is none."""
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
    """Give what kernels made of values, in the same form."""
    whole = data.tobytes()
    assert offsets[0] == 0
    assert offsets[-1] == len(whole)
    ends = offsets.tolist()
    return [
        whole[start:end] if there else None
        for start, end, there in zip(ends[:-1], ends[1:], validity.tolist(), strict=True)
    ]
