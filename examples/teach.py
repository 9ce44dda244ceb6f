"""Mark what a search returned, so that the metric of the gallery learns what you are looking for."""

from lookdown import Gallery, Where
from lookdown.lab.synthetic import small_world

gallery = Gallery.from_images("gallery", small_world("world") / "chips")
example = "chips/gas-carrier-0002.jpg"
results = gallery.search(example, k=20)

# You would look at the hits. Here the file name tells which ones are gas carriers.
right = [hit.id for hit in results.hits if "gas-carrier" in hit.id]
wrong = [hit.id for hit in results.hits if hit.id not in right]

# Labels stay in the gallery, and its metric is estimated again from all of them.
report = gallery.teach([example, *right], ["gas carrier"] * (1 + len(right)), background=wrong)
print(report.reason)

# What you have marked is known, so search among the rest.
rest = Where(labelled=False, background=False)
for metric in ("cosine", gallery.metric):
    hits = gallery.search([example, *right], k=10, where=rest, metric=metric).hits
    print(f"{metric}: {sum('gas-carrier' in hit.id for hit in hits)} gas carriers among the next 10 hits")
