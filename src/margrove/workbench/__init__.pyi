from .visible_text import visible as visible
