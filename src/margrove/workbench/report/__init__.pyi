from .judgement import r2_interval as r2_interval
from .reporting import Report as Report
from .reporting import report as report
from .score_intervals import meaning_of_intervals as meaning_of_intervals
from .score_intervals import with_intervals_of_rows as with_intervals_of_rows
