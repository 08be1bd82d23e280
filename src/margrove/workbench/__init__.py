"""From a raw table to a model that can be trusted: tables, doctor, report.

doctor/        the doctor: what is wrong with a table, and what fits to it will cost
report/        reports in one file, rendered from what `margrove.facts` says about a model
tables/        raw tables: reading files
visible_text   text of other people's files in one harmless line
workflow/      from a raw table to a model that was tested
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
