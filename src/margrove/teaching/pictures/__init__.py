"""The pictures of the lectures; margrove.plot has them all."""
