"""Reports in one file, rendered from what `margrove.facts` says about a model.

`margrove.report(model, X, y)` makes one.

blocks            what pages are made of: sections
charts            the kinds of charts that a report has, from plain numbers
document          a page of sections: templates with autoescaping
judgement         how good a model is on rows, beside what could be had for nothing
markup            HTML and SVG as text that says of itself that it is safe
plot_area         a chart in SVG: axes, and what is drawn between them
profile           the columns of a table for people
reporting         `report`: from a fitted model and its rows to a page that can be shown
scales            from values to places on paper
score_intervals   intervals of compared scores that say no more than the rows can tell
sections/         the sections of a report, a file each, in the order in which they are read
subject           what a report is about: the model
texts             Names, numbers and shares as a page shows them
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
