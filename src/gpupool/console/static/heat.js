// The heat view: a small square for each card. All squares are painted once, into a picture beside the
// page; a move or a zoom only copies a part of it, so that 40,000 cards stay smooth.
import { drawCard, paintAll, readColours } from "./heat_paint.js";
import { arrange, cardAt } from "./heat_layout.js";

const CLOSE_PX = 16; // from this size on, squares are drawn one by one, with names
const STILL_PX = 4; // a shorter drag is a click
const WHO_AFTER_MS = 120;

function watchHeat() {
  const begin = () => {
    const canvas = document.getElementById("heat-canvas");
    if (!canvas || "heat" in canvas.dataset) return;
    canvas.dataset.heat = "";
    new Heat(canvas).start();
  };
  begin();
  // A cluster that grows becomes a heat view while one looks at it.
  document.addEventListener("page-changed", begin);
}

class Heat {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.frame = canvas.parentElement;
    this.tip = document.getElementById("heat-tip");
    this.now = document.getElementById("heat-now");
    this.nodes = new Map(); // by name: { name, pool, cells }
    this.version = "";
    this.asked = null;
    this.cursor = null; // { node, card } of the keyboard
    this.pointed = null; // the same of the mouse
    this.who = new Map(); // what was said of nodes, by name
    this.view = null; // { x, y, scale }: where the world is on the canvas
    this.frames = 0;
  }

  async start() {
    this.colours = readColours(this.frame);
    this.listen();
    await this.load();
    document.addEventListener("page-changed", () => this.load());
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.colours = readColours(this.frame);
      this.paint();
    });
  }

  // Asks for what has changed. One question at a time: the last answer may be old already.
  async load() {
    const wanted = this.frame.dataset.version;
    if (wanted === this.version || this.asked) return;
    this.asked = wanted;
    try {
      const answer = await fetch(withQuery(this.frame.dataset.cards, "since", this.version));
      if (!answer.ok) return;
      this.take(await answer.json());
    } finally {
      this.asked = null;
    }
    if (this.frame.dataset.version !== wanted) this.load();
  }

  take({ version, whole, nodes }) {
    if (whole) this.nodes.clear();
    for (const [name, pool, cells] of nodes) this.nodes.set(name, { name, pool, cells });
    this.version = this.canvas.dataset.version = version;
    this.who.clear();
    if (whole) this.layout = null;
    this.resize();
    this.paint();
    this.renew();
  }

  // What is said of a card may be another thing now, and the card may be gone.
  renew() {
    for (const [key, where] of [["cursor", this.now], ["pointed", this.tip]]) {
      const found = this[key];
      if (!found) continue;
      const place = this.layout?.places.find((each) => each.name === found.place.name);
      this[key] = place && found.card < this.count(place) ? { place, card: found.card } : null;
      if (this[key]) this.say(this[key], where);
      else where.hidden = where === this.tip;
    }
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !this.nodes.size) return;
    const sharp = devicePixelRatio;
    const isSame = this.canvas.width === Math.round(width * sharp) && this.canvas.height === Math.round(height * sharp);
    if (!isSame) {
      this.canvas.width = Math.round(width * sharp);
      this.canvas.height = Math.round(height * sharp);
    }
    if (!this.layout || !isSame) {
      this.layout = arrange(this.nodes, width - 16, height - 16);
      this.picture = null;
      this.fit();
    }
    this.draw();
  }

  fit() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const scale = Math.min((width - 16) / this.layout.width, (height - 16) / this.layout.height, 28);
    this.least = scale;
    this.view = { scale, x: 8, y: 8 };
  }

  paint() {
    if (!this.layout) return;
    this.picture = paintAll(this.nodes, this.layout, this.colours);
    this.draw();
  }

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.drawNow();
    });
  }

  drawNow() {
    if (!this.layout || !this.view) return;
    if (!this.picture) this.picture = paintAll(this.nodes, this.layout, this.colours);
    if (!this.frames++) performance.mark("heat-drawn");
    const { pen, view, canvas, layout } = this;
    const sharp = devicePixelRatio;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.setTransform(sharp, 0, 0, sharp, 0, 0);
    if (view.scale < CLOSE_PX) {
      pen.imageSmoothingEnabled = view.scale < this.picture.texels;
      pen.drawImage(this.picture.canvas, view.x, view.y, layout.width * view.scale, layout.height * view.scale);
    } else {
      this.drawClose();
    }
    this.drawHeadings();
    for (const place of [this.pointed, this.cursor]) if (place) this.outline(place);
  }

  drawClose() {
    const { view, canvas } = this;
    const [right, bottom] = [canvas.clientWidth, canvas.clientHeight];
    for (const place of this.layout.places) {
      const [x, y] = [view.x + place.x * view.scale, view.y + place.y * view.scale];
      const size = view.scale;
      if (y > bottom || y + size * 1.6 < 0 || x > right || x + size * this.layout.most < 0) continue;
      const { cells } = this.nodes.get(place.name);
      for (let card = 0; card * 3 < cells.length; card++) {
        drawCard(this.pen, this.colours, cells.slice(card * 3, card * 3 + 3), x + card * size, y, size - 2);
      }
    }
  }

  drawHeadings() {
    const { pen, view } = this;
    pen.fillStyle = this.colours.faint;
    pen.font = "12px system-ui, sans-serif";
    for (const { text, y } of this.layout.headings) {
      pen.fillText(text, view.x, view.y + y * view.scale - 4);
    }
  }

  outline({ place, card }) {
    const { pen, view } = this;
    pen.strokeStyle = this.colours.ink;
    pen.lineWidth = 2;
    const size = Math.max(4, view.scale);
    pen.strokeRect(view.x + (place.x + card) * view.scale - 1, view.y + place.y * view.scale - 1, size, size);
  }

  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const { view } = this;
    const scale = Math.min(60, Math.max(this.least / 2, view.scale * factor));
    view.x = x - ((x - view.x) * scale) / view.scale;
    view.y = y - ((y - view.y) * scale) / view.scale;
    view.scale = scale;
    this.draw();
  }

  move(x, y) {
    this.view.x += x;
    this.view.y += y;
    this.draw();
  }

  at(event) {
    if (!this.layout) return null;
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return cardAt(this.layout, this.nodes, (x - this.view.x) / this.view.scale, (y - this.view.y) / this.view.scale);
  }

  open(place) {
    location.assign(withQuery(this.frame.dataset.node, "node", place.name));
  }

  listen() {
    const { canvas } = this;
    let from = null;
    canvas.addEventListener("pointerdown", (event) => {
      from = { x: event.clientX, y: event.clientY, moved: 0 };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!from) return this.point(event);
      const [x, y] = [event.clientX - from.x, event.clientY - from.y];
      from = { x: event.clientX, y: event.clientY, moved: from.moved + Math.abs(x) + Math.abs(y) };
      canvas.classList.toggle("dragged", from.moved > STILL_PX);
      if (this.view) this.move(x, y);
    });
    canvas.addEventListener("pointerup", (event) => {
      const found = from && from.moved <= STILL_PX ? this.at(event) : null;
      from = null;
      canvas.classList.remove("dragged");
      if (found) this.open(found.place);
    });
    canvas.addEventListener("pointercancel", () => (from = null));
    canvas.addEventListener("pointerleave", () => this.point(null));
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const box = canvas.getBoundingClientRect();
        if (this.view) this.zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
      },
      { passive: false },
    );
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("focus", () => this.step(0, 0));
    canvas.addEventListener("blur", () => this.select(null));
  }

  point(event) {
    const found = event && this.at(event);
    if (same(found, this.pointed)) return;
    this.pointed = found;
    this.draw();
    clearTimeout(this.soon);
    this.tip.hidden = true;
    if (found) this.soon = setTimeout(() => this.say(found, this.tip), WHO_AFTER_MS);
  }

  key(event) {
    const keys = {
      ArrowLeft: () => this.step(-1, 0),
      ArrowRight: () => this.step(1, 0),
      ArrowUp: () => this.step(0, -1),
      ArrowDown: () => this.step(0, 1),
      "+": () => this.zoom(1.25),
      "=": () => this.zoom(1.25),
      "-": () => this.zoom(0.8),
      0: () => (this.fit(), this.draw()),
      Enter: () => this.cursor && this.open(this.cursor.place),
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || !this.layout) return;
    event.preventDefault();
    keys[event.key]();
  }

  // To the next card, or to the nearest node above or below.
  step(x, y) {
    if (!this.layout?.places.length) return;
    const { places } = this.layout;
    if (!this.cursor) return this.select({ place: places[0], card: 0 });
    const { place, card } = this.cursor;
    if (y) {
      const others = places.filter((each) => y * (each.y - place.y) > 0);
      const line = Math.min(...others.map((each) => y * each.y));
      const near = others.filter((each) => y * each.y === line);
      near.sort((a, b) => Math.abs(a.x - place.x) - Math.abs(b.x - place.x));
      if (near[0]) this.select({ place: near[0], card: Math.min(card, this.count(near[0]) - 1) });
      return;
    }
    const next = card + x;
    if (next >= 0 && next < this.count(place)) return this.select({ place, card: next });
    const other = places[places.indexOf(place) + x];
    if (other) this.select({ place: other, card: x > 0 ? 0 : this.count(other) - 1 });
  }

  count(place) {
    return this.nodes.get(place.name).cells.length / 3;
  }

  select(found) {
    this.cursor = found;
    if (found) {
      this.reveal(found);
      this.say(found, this.now);
    }
    this.draw();
  }

  reveal({ place, card }) {
    const { view, canvas } = this;
    const [x, y] = [view.x + (place.x + card) * view.scale, view.y + place.y * view.scale];
    if (x < 0 || x > canvas.clientWidth - view.scale) view.x += canvas.clientWidth / 2 - x;
    if (y < 0 || y > canvas.clientHeight - view.scale) view.y += canvas.clientHeight / 2 - y;
  }

  // Who is on the card: asked when somebody points at it, not sent for all 40,000.
  async say(found, where) {
    const { name } = found.place;
    if (!this.who.has(name)) {
      const answer = await fetch(withQuery(this.frame.dataset.cards, "node", name));
      if (!answer.ok) return;
      this.who.set(name, (await answer.json()).cards);
    }
    const isStill = same(found, where === this.tip ? this.pointed : this.cursor);
    if (!isStill) return;
    const words = this.who.get(name)[found.card] ?? [];
    where.textContent = [name, ...words].join("\n");
    if (where === this.tip) this.place(found);
  }

  place({ place, card }) {
    const { view, tip, canvas } = this;
    tip.hidden = false;
    const x = view.x + (place.x + card + 1) * view.scale + 8;
    const y = view.y + (place.y + 1) * view.scale + 8;
    tip.style.left = `${Math.max(0, Math.min(x, canvas.clientWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(0, Math.min(y, canvas.clientHeight - tip.offsetHeight - 8))}px`;
  }
}

function same(one, other) {
  return one === other || (one && other && one.place === other.place && one.card === other.card);
}

function withQuery(address, name, value) {
  const url = new URL(address, location.href);
  if (value) url.searchParams.set(name, value);
  return url;
}

watchHeat();
