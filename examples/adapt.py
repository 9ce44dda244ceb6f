"""Adapt a metric to images that nobody has labelled, of kinds that it has never seen."""

from sklearn.datasets import load_digits

from lookdown import GaussianLikelihoodRatio, adapt, evaluate

embeddings, labels = load_digits(return_X_y=True)  # embeddings of your own network here
source, target = labels < 5, labels >= 5  # the metric knows the digits 0 to 4, the archive holds 5 to 9

# Five kinds cannot tell which of 64 dimensions matter, so drop none of them: indefinite="keep".
metric = GaussianLikelihoodRatio(shrinkage=0.1, indefinite="keep").fit(embeddings[source], labels[source])
adaptation = adapt(metric, embeddings[target])  # no label of the target is used
print("Adapted to", adaptation.reason)
print("Likely to be better:", "yes" if adaptation.helped else "no, so keep the old one")

# Only to see what it was worth: labels of the target, which you would not have.
archive, kinds = embeddings[target], labels[target]
for name, candidate in (("before", metric), ("after", adaptation.metric)):
    scores = evaluate(candidate, archive[:200], kinds[:200], archive[200:], kinds[200:])
    print(f"Mean average precision {name}: {scores.mean_average_precision:.3f}")
