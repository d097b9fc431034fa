// Paints squares of the heat view. A card is three characters: whose colour, how much of it is
// allocated ("0" to "D", in twentieths), and its state; a capital letter: a filter does not mean it.

const STEPS = 20;
const LARGEST_PX = 8192; // of a picture: browsers have limits
const DIM = 0.22;

// The same colours as everywhere: from the style sheet, in the theme that is on.
export function readColours(where) {
  const probe = document.createElement("span");
  probe.hidden = false;
  where.append(probe);
  const of = (name) => {
    probe.className = `swatch ${name}`;
    return getComputedStyle(probe).backgroundColor;
  };
  const found = { "-": "transparent" };
  for (let slot = 0; slot < 10; slot++) found[slot] = of(`c${slot}`);
  for (let level = 0; level < 6; level++) found["abcdef"[level]] = of(`use${level}`);
  found.u = of("use-unknown");
  found.free = of("heat-free");
  found.bad = of("heat-sick");
  probe.className = "";
  const text = (name) => {
    probe.className = name;
    return getComputedStyle(probe).color;
  };
  found.ink = text("");
  found.faint = text("help");
  found.waits = text("state waits");
  probe.remove();
  return found;
}

// A square that is too small to be filled from below has a colour between free and full.
function drawSmall(pen, colours, cell, x, y, size) {
  const state = cell[2].toLowerCase();
  const dim = cell[2] === state ? 1 : DIM;
  pen.globalAlpha = dim;
  pen.fillStyle = state === "s" ? colours.bad : colours.free;
  pen.fillRect(x, y, size, size);
  const filled = (cell.charCodeAt(1) - 48) / STEPS;
  if (filled && state !== "s") {
    pen.globalAlpha = dim * (0.3 + 0.7 * filled);
    pen.fillStyle = colours[cell[0]];
    pen.fillRect(x, y, size, size);
  }
  pen.globalAlpha = dim;
  if (state === "c") cross(pen, colours.waits, x, y, size, false);
  if (state === "s") cross(pen, colours.free, x, y, size, true);
  pen.globalAlpha = 1;
}

export function drawCard(pen, colours, cell, x, y, size) {
  const state = cell[2].toLowerCase();
  pen.globalAlpha = cell[2] === state ? 1 : DIM;
  pen.fillStyle = state === "s" ? colours.bad : colours.free;
  pen.fillRect(x, y, size, size);
  const filled = (size * (cell.charCodeAt(1) - 48)) / STEPS;
  if (filled && state !== "s") {
    pen.fillStyle = colours[cell[0]];
    pen.fillRect(x, y + size - filled, size, filled);
  }
  if (state === "c") cross(pen, colours.waits, x, y, size, false);
  if (state === "s") cross(pen, colours.free, x, y, size, true);
  if (state === "w") frame(pen, colours.ink, x, y, size);
  pen.globalAlpha = 1;
}

function cross(pen, colour, x, y, size, isWhole) {
  pen.strokeStyle = colour;
  pen.lineWidth = Math.max(1, size / 6);
  pen.beginPath();
  pen.moveTo(x, y + size);
  pen.lineTo(x + size, y);
  if (isWhole) {
    pen.moveTo(x, y);
    pen.lineTo(x + size, y + size);
  }
  pen.stroke();
}

function frame(pen, colour, x, y, size) {
  pen.strokeStyle = colour;
  pen.lineWidth = Math.max(1, size / 10);
  const half = pen.lineWidth / 2;
  pen.strokeRect(x + half, y + half, size - pen.lineWidth, size - pen.lineWidth);
}

// All squares, once.
export function paintAll(nodes, layout, colours) {
  const room = LARGEST_PX / Math.max(layout.width, layout.height);
  const texels = Math.max(1, Math.min(6, Math.floor(room)));
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(layout.width * texels);
  canvas.height = Math.ceil(layout.height * texels);
  const pen = canvas.getContext("2d");
  const size = texels > 2 ? texels - 1 : texels;
  for (const place of layout.places) {
    const { cells } = nodes.get(place.name);
    for (let card = 0; card * 3 < cells.length; card++) {
      const cell = cells.slice(card * 3, card * 3 + 3);
      drawSmall(pen, colours, cell, (place.x + card) * texels, place.y * texels, size);
    }
  }
  return { canvas, texels };
}
