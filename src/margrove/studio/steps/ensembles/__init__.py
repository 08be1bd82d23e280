"""Steps of ensembles: members of bagging and forests, rounds of boosting."""
