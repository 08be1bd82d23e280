"""
Decision trees: tennis and the restaurant
=========================================

A decision tree is a game of twenty questions: the most useful question first. Two tables of the
lectures show how a tree is grown, read, and asked for its reasons.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt

import margrove
from margrove import DecisionTreeClassifier
from margrove.datasets import load_play_tennis, load_restaurant
from margrove.grove.criteria import impurity

# %%
# Is it a day for tennis?
# -----------------------
# Fourteen days, four features, all of them words. Nothing has to be encoded.

tennis = load_play_tennis(as_frame=True)
print(tennis.data.assign(play=tennis.target).head().to_string())

# %%
# Nine of fourteen days are tennis days. How uncertain is that? Its entropy is 0.94 bits. A
# question is the better, the less uncertain it leaves us; what it takes away is its information
# gain.

print(f"entropy of all days: {impurity('entropy', [9, 5]):.3f}")
for name in tennis.feature_names:
    stump = DecisionTreeClassifier(criterion="entropy", split="multiway", max_depth=1)
    root = margrove.read_tree(stump.fit(tennis.data[[name]], tennis.target)).nodes[0]
    print(f"gain of {name:12s} {root.decrease / root.weight:.3f}")

# %%
# What each question leaves, value by value:

_, axes = plt.subplots(1, 4, figsize=(13, 3.4), layout="constrained")
margrove.plot.split_children(tennis.data, tennis.target, axes=axes)

# %%
# The outlook is asked first. Overcast days are all tennis days: a leaf. Among sunny days the
# humidity tells all, among rainy ones the wind. (The slides print .246 and .151, from rounded
# entropies.)

model = DecisionTreeClassifier(criterion="entropy", split="multiway")
model.fit(tennis.data, tennis.target)
_, ax = plt.subplots(figsize=(9, 5), layout="constrained")
margrove.plot.tree(model, ax=ax)
for node in margrove.read_tree(model).nodes:
    if not node.is_leaf:
        print(f"{node.question.text}: gain {node.decrease / node.weight:.3f}")

# %%
# A tree is a list of rules, and gives its reasons:

for rule in margrove.rules(model):
    print(rule.text)
print()
print(margrove.explain(model, tennis.data[:1]).text)

# %%
# What if the wind is not known? The row goes down both branches, in proportion to the days that
# did.

unknown = {"outlook": "rain", "temperature": "mild", "humidity": "high", "wind": None}
answer = margrove.explain(model, unknown)
print(answer.prediction, dict(zip(model.classes_.tolist(), answer.value, strict=True)))

# %%
# Will the guests wait?
# ---------------------
# Twelve guests of a restaurant, ten features. "Patrons" (how full is it?) leaves 0.46 bits of
# uncertainty: guests always stay in a place with some patrons and never in one with none. "Type"
# leaves the whole bit: in each kind of restaurant, half of the guests wait.

guests = load_restaurant(as_frame=True)
left = {}
for name in guests.feature_names:
    stump = DecisionTreeClassifier(criterion="entropy", split="multiway", max_depth=1)
    root = margrove.read_tree(stump.fit(guests.data[[name]], guests.target)).nodes[0]
    left[name] = root.impurity - (0.0 if root.is_leaf else root.decrease / root.weight)
for name in sorted(left, key=left.get):
    print(f"{name:6s} leaves {left[name]:.3f} bits")

# %%
model = DecisionTreeClassifier(criterion="entropy", split="multiway").fit(
    guests.data, guests.target
)
_, ax = plt.subplots(figsize=(11, 6), layout="constrained")
margrove.plot.tree(model, ax=ax)
print(f"right about {model.score(guests.data, guests.target):.0%} of the twelve guests")

# %%
# Finding the smallest tree that fits is hopeless in general (NP-hard); this greedy one, one
# question after the other, is what all algorithms for large tables do. How questions are judged
# is the subject of :doc:`impurity_and_gain`.
