"""The commands, one file each, loaded when they are called.

compare    margrove compare
datasets   margrove datasets
doctor     margrove doctor
explain    margrove explain
fit        margrove fit
inspect    margrove inspect
predict    margrove predict
report     margrove report
run        margrove run
studio     margrove studio
tune       margrove tune
warmup     margrove warmup
"""
