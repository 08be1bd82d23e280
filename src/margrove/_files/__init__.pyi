from .archive_layout import FORMAT_VERSION as FORMAT_VERSION
from .archive_layout import MAGIC as MAGIC
from .archive_reading import read_archive as read_archive
from .archive_reading import unpack as unpack
from .archive_writing import pack as pack
from .archive_writing import seal as seal
from .archive_writing import write_archive as write_archive
from .atomic_files import write_atomically as write_atomically
