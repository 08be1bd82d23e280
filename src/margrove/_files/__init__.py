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

archive_layout    what the writer and the reader of archives agree on
archive_reading   the bytes of an archive to plain values
archive_writing   plain values to the bytes of an archive
atomic_files      files that are either there as a whole or not at all
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
