"""Whether the parts of a MATLAB 5 file fit into each other, before SciPy trusts their sizes.

SciPy's reader is compiled code that can crash the interpreter on a damaged file. This walks the
tags (type, size) of the published layout and raises instead.
"""

import math
import struct
import zlib

_SIZES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8, 16: 1, 17: 2, 18: 4}
_INT32, _UINT32, _MATRIX, _COMPRESSED = 5, 6, 14, 15
_CELL, _STRUCT, _FIRST_NUMERIC, _LAST_NUMERIC = 1, 2, 6, 15
_COMPLEX = 0x0800


def check_structure(content: bytes) -> None:
    """Raise `ValueError` unless every element lies inside the one that contains it."""
    order = {b"IM": "<", b"MI": ">"}.get(content[126:128])
    if order is None:
        raise ValueError("the header of a MATLAB 5 file is missing")
    elements = _elements(content[128:], order)
    if not elements:
        raise ValueError("it ends after its header")
    for kind, body in elements:
        if kind == _COMPRESSED:
            [(kind, body)] = _elements(zlib.decompress(body), order)
        if kind != _MATRIX:
            raise ValueError(f"an element of type {kind} stands where a variable should")
        _check_matrix(body, order)


def _elements(content: bytes, order: str) -> list[tuple[int, bytes]]:
    """(type, bytes) of the elements that follow one another in `content`."""
    position, elements = 0, []
    while position < len(content):
        if position + 8 > len(content):
            raise ValueError("it ends inside a tag")
        kind, size = struct.unpack_from(f"{order}II", content, position)
        start = position + 8
        if kind >> 16:  # a small element: type, size and at most four bytes share the tag
            kind, size, start, position = kind & 0xFFFF, kind >> 16, position + 4, position + 8
            if size > 4:
                raise ValueError(f"a small element of {size} bytes")
        else:
            # Only compressed elements are not filled up to a multiple of eight bytes.
            position = start + (size if kind == _COMPRESSED else -(-size // 8) * 8)
        if kind not in (*_SIZES, _MATRIX, _COMPRESSED) or position > len(content):
            raise ValueError(f"an element of type {kind} with {size} bytes does not fit")
        if size % _SIZES.get(kind, 1):
            raise ValueError(f"{size} bytes are no whole number of values of type {kind}")
        elements.append((kind, content[start : start + size]))
    return elements


def _check_matrix(body: bytes, order: str) -> None:
    if not body:  # an empty matrix
        return
    parts = _elements(body, order)
    kinds = [kind for kind, _ in parts]
    if kinds[:2] != [_UINT32, _INT32] or len(parts) < 3 or len(parts[0][1]) != 8:
        raise ValueError("a variable without flags, dimensions or name")
    flags = struct.unpack_from(f"{order}I", parts[0][1])[0]
    dims = struct.unpack(f"{order}{len(parts[1][1]) // 4}i", parts[1][1])
    if len(dims) < 2 or min(dims) < 0:
        raise ValueError(f"a variable with the dimensions {dims}")
    matlab_class = flags & 0xFF
    if _FIRST_NUMERIC <= matlab_class <= _LAST_NUMERIC:
        data = parts[3:]
        expected = 2 if flags & _COMPLEX else 1
        lengths = [len(x) // _SIZES.get(kind, 1) for kind, x in data]
        if lengths != [math.prod(dims)] * expected:
            raise ValueError(f"a variable of dimensions {dims} with {lengths} values")
    for kind, inner in parts[3:]:
        if kind == _MATRIX:
            if matlab_class < _CELL or matlab_class > _STRUCT + 1:
                raise ValueError("a variable inside another one that cannot hold it")
            _check_matrix(inner, order)
