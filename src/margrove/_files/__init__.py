"""Files: written in one step or not at all, and the container of model files and checkpoints.

An archive is a kind, a tree of plain values, and a digest over both. It knows nothing about
models. It holds None, booleans, integers, floats, strings, bytes, lists, tuples, dictionaries with
string keys, NumPy arrays and scalars of a closed list of types, and sparse rows (CSR). Its bytes
depend on these values alone.

All numbers are little-endian; `length` is an unsigned 64-bit integer.

    magic      14 bytes, see MAGIC
    version    unsigned 16-bit integer
    size       length of the whole file, the digest included
    kind       a string without its tag: length, UTF-8
    values     a dictionary: a tag and what belongs to it, see the writer and the reader
    digest     32 bytes: SHA-256 of all bytes before it
"""

from margrove._files.archive_layout import FORMAT_VERSION, MAGIC
from margrove._files.archive_reading import read_archive, unpack
from margrove._files.archive_writing import pack, seal, write_archive
from margrove._files.atomic_files import write_atomically

__all__ = [
    "FORMAT_VERSION",
    "MAGIC",
    "pack",
    "read_archive",
    "seal",
    "unpack",
    "write_archive",
    "write_atomically",
]
