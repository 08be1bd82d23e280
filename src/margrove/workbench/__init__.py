"""From a raw table to a tested model: tables, doctor, workflow, report.

tables/        raw tables: reading files, types of columns, preparation for learners
doctor/        checks of a table before learning, and estimates of the cost of fits
workflow/      from a raw table to a tested model
report/        reports in one HTML file, made from `margrove.facts`
visible_text   text from files as one line without invisible characters
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
