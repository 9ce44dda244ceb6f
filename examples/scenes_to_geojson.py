"""Search whole scenes for an object, and write the hits as a map layer."""

from lookdown import Gallery
from lookdown.lab.synthetic import small_world

# GeoTIFF scenes of your own here. Chips of ships come along, and serve as examples.
world = small_world("world", kinds=("ferry",), scenes=1, scene_size=768)

# An image larger than 512 pixels is a scene: it is cut into windows of 64 pixels that overlap by half.
gallery = Gallery.from_images("gallery", sorted((world / "scenes").glob("*.tif")))

# `turned` compares the example in four orientations, since ships lie in a harbour in any direction.
results = gallery.search(sorted((world / "chips").glob("ferry-*.jpg")), k=20, turned=True)

layer = results.to_geopandas()  # footprints in longitude and latitude
layer.to_file("hits.geojson")
west, south, east, north = layer.total_bounds
searched = results.rows_searched
print(f"{len(layer)} hits of {searched} windows between {west:.3f}, {south:.3f} and {east:.3f}, {north:.3f}")
