"""Pictures of decision trees.

One drawing of a tree has three renderers:

    facts.sketch_tree  ->  layout, node_positions  ->  shapes  ->  tree_picture (matplotlib)
                                                                   svg (SVG and HTML)
                                                                   the report (with themes)
"""
