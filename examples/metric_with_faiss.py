"""Search by the likelihood ratio with an index of faiss, or with any other engine that knows L2 distances."""

import faiss
import numpy as np
from sklearn.datasets import load_digits

from lookdown import GaussianLikelihoodRatio

embeddings, labels = load_digits(return_X_y=True)  # embeddings of your own network here
train, gallery, queries = slice(0, 800), slice(800, 1700), slice(1700, None)
metric = GaussianLikelihoodRatio(shrinkage=0.1).fit(embeddings[train], labels[train])

# After `transform`, the nearest neighbours are those with the highest ratio.
index = faiss.IndexFlatL2(metric.transform(embeddings[:1]).shape[1])
index.add(metric.transform(embeddings[gallery]).astype(np.float32))
_, neighbours = index.search(metric.transform(embeddings[queries]).astype(np.float32), 10)

scores = metric.score(embeddings[queries], embeddings[gallery])  # the same ranking, without an index
same = (neighbours == np.argsort(-scores, axis=1)[:, :10]).mean()
right = (labels[gallery][neighbours] == labels[queries][:, None]).mean()
print(f"faiss returns the neighbours that the ratio ranks first: {same:.1%} of them are the same")
print(f"{right:.1%} of the ten nearest neighbours show the digit of the query")
