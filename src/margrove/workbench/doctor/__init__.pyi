from .column_figures import figures_of as figures_of
from .diagnosis import Diagnosis as Diagnosis
from .diagnosis import doctor as doctor
from .findings import KINDS as KINDS
from .system import SystemFacts as SystemFacts
from .system import system_facts as system_facts
