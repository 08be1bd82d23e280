"""What the page shows: scenes, presets, maps, trees, tables of the user's."""
