from .block import checkpoint as checkpoint
