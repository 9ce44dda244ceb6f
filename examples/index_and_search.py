"""Index a folder of images and search it for objects like one example: no labels, no training."""

from lookdown import Gallery
from lookdown.lab.synthetic import small_world

images = small_world("world") / "chips"  # your own folder here: JPEG, PNG, or GeoTIFF

# The network was trained on photographs. Run again, this line adds the images that are new and skips the rest.
gallery = Gallery.from_images("gallery", images)

# An example is the id of a chip in the gallery, or an image: Path("ferry.jpg"), bytes or pixels.
results = gallery.search("chips/gas-carrier-0002.jpg", k=5)

print(results)  # a table; in a notebook the hits are shown as pictures
best = results.hits[0]
print(f"The best of {results.rows_searched} chips is {best.id}, with a score of {best.score:.2f}.")
