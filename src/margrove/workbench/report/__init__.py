"""Reports in one HTML file, made from `margrove.facts`.

reporting         report: from a fitted model and its rows to a page
subject           Subject: the model, its rows and the names of its features
judgement         how good a model is on rows, compared with a baseline
profile           a summary of the columns of a table
score_intervals   intervals of compared scores
sections/         the sections of a report, one file each
blocks            the contents of sections: words, cards, tables, figures, code
charts            bars, intervals, histograms and maps as SVG, from plain numbers
plot_area         charts with two axes as SVG
scales            linear and logarithmic scales, and their ticks
texts             names, numbers and shares as a page shows them
markup            HTML and SVG elements with escaped texts
document          the page: templates and the security policy
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
