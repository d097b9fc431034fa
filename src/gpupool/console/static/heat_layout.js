// Where each node is in the heat view. Measured in squares: a node is a line of as many as it has cards.

const ASIDE = 0.7; // between two nodes
const BELOW = 0.35;
const HEADING_PX = 16; // above each node pool, when all is shown
const HEADING = [0.8, 8]; // the same in squares, at least and at most

// As large as it can be, so that all of it fits.
export function arrange(nodes, width, height) {
  const pools = poolsOf(nodes);
  const most = Math.max(1, ...[...nodes.values()].map((node) => node.cells.length / 3));
  const { columns, scale } = bestColumns(pools, most, width, height);
  const heading = Math.min(HEADING[1], Math.max(HEADING[0], HEADING_PX / scale));
  const places = [];
  const headings = [];
  let y = 0;
  for (const [pool, members] of pools) {
    headings.push({ text: pool, y: y + heading });
    y += heading;
    members.forEach((node, index) => {
      const line = Math.floor(index / columns);
      places.push({ name: node.name, x: (index % columns) * (most + ASIDE), y: y + line * (1 + BELOW) });
    });
    y += Math.ceil(members.length / columns) * (1 + BELOW);
  }
  return { places, headings, most, width: columns * (most + ASIDE), height: y, lines: linesOf(places) };
}

function poolsOf(nodes) {
  const sorted = [...nodes.values()].sort((a, b) => compare(a.pool, b.pool) || compare(a.name, b.name));
  const pools = new Map();
  for (const node of sorted) {
    if (!pools.has(node.pool)) pools.set(node.pool, []);
    pools.get(node.pool).push(node);
  }
  return pools;
}

function bestColumns(pools, most, width, height) {
  let best = { columns: 1, scale: 0 };
  for (let columns = 1; columns * 4 <= width; columns++) {
    let lines = 0;
    for (const members of pools.values()) lines += Math.ceil(members.length / columns);
    const room = Math.max(height / 4, height - pools.size * HEADING_PX);
    const scale = Math.min(width / (columns * (most + ASIDE)), room / (lines * (1 + BELOW)));
    if (scale > best.scale) best = { columns, scale };
  }
  return best;
}

function linesOf(places) {
  const lines = new Map();
  for (const place of places) {
    if (!lines.has(place.y)) lines.set(place.y, []);
    lines.get(place.y).push(place);
  }
  return lines;
}

// The card at a point, or null.
export function cardAt(layout, nodes, x, y) {
  for (const [top, places] of layout.lines) {
    if (y < top || y >= top + 1) continue;
    for (const place of places) {
      const card = Math.floor(x - place.x);
      if (x >= place.x && card < nodes.get(place.name).cells.length / 3) return { place, card };
      if (x < place.x) break;
    }
  }
  return null;
}

function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}
