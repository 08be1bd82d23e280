"""A fitted tree for people: its nodes, rules, regions and reasons."""
