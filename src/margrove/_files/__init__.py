"""Atomic writing of files, and the archive format of model files and checkpoints.

An archive has a kind (a string), nested plain values, and a digest of both. It knows nothing about
models. Values are None, booleans, integers, floats, strings, bytes, lists, tuples, dictionaries
with string keys, NumPy arrays and scalars of a fixed list of types, and sparse matrices (CSR). The
bytes of an archive depend on these values only.

All numbers are little-endian; `length` is an unsigned 64-bit integer.

    magic      14 bytes, see MAGIC
    version    unsigned 16-bit integer
    size       length of the file, including the digest
    kind       a string without its tag: length, UTF-8
    values     a dictionary: a tag and its contents, see the writer and the reader
    digest     32 bytes: SHA-256 of all bytes before it

archive_layout    the constants of the format: sizes, limits and type codes
archive_reading   reads the bytes of an archive into plain values
archive_writing   writes plain values as the bytes of an archive
atomic_files      writes a file completely or not at all
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
