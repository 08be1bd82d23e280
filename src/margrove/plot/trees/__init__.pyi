from .layout import drawing_of as drawing_of
from .region_pictures import regions as regions
from .shapes import EDGES as EDGES
from .shapes import Box as Box
from .shapes import Drawing as Drawing
from .shapes import Line as Line
from .shapes import Shape as Shape
from .tree_picture import tree as tree
