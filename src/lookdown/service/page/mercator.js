// Degrees to the plane of web maps and back: the world is a unit square, north is up.

const FURTHEST = 85.0511; // degrees of latitude at the edge of that square

export function project([lon, lat]) {
  const sine = Math.sin((Math.min(FURTHEST, Math.max(-FURTHEST, lat)) * Math.PI) / 180);
  return [lon / 360 + 0.5, 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI)];
}

export function unproject([x, y]) {
  return [(x - 0.5) * 360, (Math.atan(Math.sinh((0.5 - y) * 2 * Math.PI)) * 180) / Math.PI];
}

/** The outer rings of a geometry of GeoJSON; lines and points are rings of few points. */
export function rings(geometry) {
  switch (geometry?.type) {
    case "Polygon": return geometry.coordinates.slice(0, 1);
    case "MultiPolygon": return geometry.coordinates.map((polygon) => polygon[0]);
    case "LineString": return [geometry.coordinates];
    case "Point": return [[geometry.coordinates]];
    case "GeometryCollection": return geometry.geometries.flatMap(rings);
    default: return [];
  }
}

const STEPS = [45, 30, 15, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001];

/** Round degrees between two values, some of them; and how many decimals they need. */
export function graticule(low, high, most) {
  const step = STEPS.findLast((one) => (high - low) / one <= most) ?? STEPS[0];
  const first = Math.ceil(low / step);
  const n = Math.max(0, Math.floor(high / step) - first + 1);
  const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  return { decimals, values: Array.from({ length: n }, (_, i) => (first + i) * step) };
}
