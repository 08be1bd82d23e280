"""Growing a tree: nodes are searched for their best split, level by level or subtree by subtree."""
