"""Checks that the parts of a MATLAB 5 file fit into each other, before SciPy trusts their sizes.

SciPy's reader is compiled code; a damaged file can make it crash the interpreter or allocate and
fill arrays for hours. This walks the tags (type, size) of the published layout and raises instead.
"""

import math
import struct
import zlib

from dhn.memory import check_memory

_SIZES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8, 16: 1, 17: 2, 18: 4}
_INT8, _INT32, _UINT32, _MATRIX, _COMPRESSED = 1, 5, 6, 14, 15  # types of elements
_CELL, _STRUCT, _OBJECT, _CHAR, _SPARSE = 1, 2, 3, 4, 5  # classes of variables
_FIRST_NUMERIC, _LAST_NUMERIC, _FUNCTION, _OPAQUE = 6, 15, 16, 17  # classes of variables
_COMPLEX = 0x0800  # flag of a variable
_DEEPEST = 50  # levels of cells and structs; SciPy recurses in compiled code
_TAG = 8  # bytes

_Element = tuple[int, memoryview]


def check_structure(content: bytes) -> None:
    """Raise `ValueError` unless all elements lie inside one another and have their declared sizes.

    Arguments:
        content: The whole file.
    """
    order = {b"IM": "<", b"MI": ">"}.get(content[126:128])
    if order is None:
        raise ValueError("the header of a MATLAB 5 file is missing")
    elements = _elements(memoryview(content)[128:], order)
    if not elements:
        raise ValueError("it ends after its header")
    total = 0
    for kind, body in elements:
        if kind == _COMPRESSED:
            kind, body = _inflate(body, order, total)
        if kind != _MATRIX:
            raise ValueError(f"an element of type {kind} stands where a variable should")
        total += len(body)
        _check_matrix(body, order, 0)


def _inflate(body: memoryview, order: str, total: int) -> _Element:
    """The one element in a compressed one; its tag bounds how much is unpacked."""
    stream = zlib.decompressobj()
    tag = stream.decompress(body, _TAG)
    if len(tag) < _TAG:
        raise ValueError("a compressed variable ends inside its tag")
    size = struct.unpack(f"{order}II", tag)[1]
    check_memory(total + size, "its variables")
    content = tag + stream.decompress(stream.unconsumed_tail, size + 2 * _TAG)
    if stream.eof:
        elements = _elements(memoryview(content), order)
        if len(elements) == 1:
            return elements[0]
    raise ValueError("a compressed variable does not have the size that its tag declares")


def _elements(content: memoryview, order: str) -> list[_Element]:
    """(type, bytes) of the elements that follow one another in `content`."""
    position, elements = 0, []
    while position < len(content):
        if position + _TAG > len(content):
            raise ValueError("it ends inside a tag")
        kind, size = struct.unpack_from(f"{order}II", content, position)
        start = position + _TAG
        if kind >> 16:  # a small element: type, size and at most four bytes share the tag
            kind, size, start, position = kind & 0xFFFF, kind >> 16, position + 4, position + _TAG
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


def _check_matrix(body: memoryview, order: str, depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError(f"variables are nested more than {_DEEPEST} levels deep")
    if not len(body):  # an empty matrix
        return
    parts = _elements(body, order)
    kinds = [kind for kind, _ in parts]
    if kinds[0] != _UINT32 or len(parts[0][1]) != 8:
        raise ValueError("a variable without flags")
    flags = struct.unpack_from(f"{order}I", parts[0][1])[0]
    if flags & 0xFF == _OPAQUE:  # name, type system, class; no dimensions
        inner, count = parts[4:], 1
        if kinds[1:4] != [_INT8] * 3:
            raise ValueError("an opaque variable without its names")
    else:
        if kinds[1:2] != [_INT32] or len(parts) < 3:
            raise ValueError("a variable without dimensions or name")
        dims = struct.unpack(f"{order}{len(parts[1][1]) // 4}i", parts[1][1])
        if len(dims) < 2 or min(dims) < 0:
            raise ValueError(f"a variable with the dimensions {dims}")
        inner, count = _contents(flags, dims, parts[3:], order)
    if len(inner) != count or any(kind != _MATRIX for kind, _ in inner):
        raise ValueError(f"a cell or struct of {count} parts holds {len(inner)}")
    for _, part in inner:
        _check_matrix(part, order, depth + 1)


def _contents(
    flags: int, dims: tuple[int, ...], data: list[_Element], order: str
) -> tuple[list[_Element], int]:
    """The variables inside a variable, and how many its dimensions ask for."""
    matlab_class, count = flags & 0xFF, math.prod(dims)
    if _FIRST_NUMERIC <= matlab_class <= _LAST_NUMERIC:
        expected = [count] * (2 if flags & _COMPLEX else 1)
    elif matlab_class == _CHAR:  # one to four bytes a character
        expected = [count] if data and count <= len(data[0][1]) else [-1]
        data = [(_INT8, x[:count]) for _, x in data]
    elif matlab_class == _SPARSE:  # rows, starts of columns, values
        expected = [dims[1] + 1]
        data = data[1:2] if len(data) == (4 if flags & _COMPLEX else 3) else []
    elif matlab_class == _CELL:
        return data, count
    elif matlab_class == _FUNCTION:
        return data, 1
    elif matlab_class in (_STRUCT, _OBJECT):
        return _struct_contents(count, data[matlab_class == _OBJECT :], order)
    else:
        raise ValueError(f"a variable of the unknown class {matlab_class}")
    lengths = [len(x) // _SIZES.get(kind, -1) for kind, x in data]
    if lengths != expected:
        raise ValueError(f"a variable of dimensions {dims} with {lengths} values")
    return [], 0


def _struct_contents(count: int, data: list[_Element], order: str) -> tuple[list[_Element], int]:
    """As `_contents`; the names of the fields, each of the same width, stand first."""
    if [kind for kind, _ in data[:2]] != [_INT32, _INT8] or len(data[0][1]) != 4:
        raise ValueError("a struct without the names of its fields")
    width, names = struct.unpack(f"{order}i", data[0][1])[0], len(data[1][1])
    if width < 1 or names % width or (names == 0 and count > 1):
        raise ValueError(f"a struct array of {count} with {names} bytes of names {width} wide")
    return data[2:], count * (names // width)
