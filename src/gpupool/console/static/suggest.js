// Suggests fields and values at the cursor of a YAML editor, as the API server's own schema knows them.
// Ctrl-Space asks for them; arrow keys choose, Enter or Tab takes one, Escape closes the list.
import { placeIn } from "./yaml_place.js";

const PAUSE_MS = 120;
const LINE_PX = 20;
const MOST = 50;

export function startSuggestions(editor, area) {
  const url = editor.dataset.suggestions;
  if (!url) return;
  const list = makeList(editor, area);
  const known = new Map(); // answers, by address
  let place = null;
  let chosen = 0;
  let waiting = 0;

  const isOpen = () => !list.hidden;
  const close = () => {
    list.hidden = true;
    area.removeAttribute("aria-activedescendant");
  };
  const choose = (number) => {
    const items = [...list.children];
    chosen = (number + items.length) % items.length;
    items.forEach((item, at) => item.setAttribute("aria-selected", String(at === chosen)));
    items[chosen].scrollIntoView({ block: "nearest" });
    area.setAttribute("aria-activedescendant", items[chosen].id);
  };
  const show = (named) => {
    list.replaceChildren(...named.slice(0, MOST).map((each, at) => itemOf(each, `${list.id}-${at}`)));
    list.hidden = !named.length;
    if (list.hidden) return close();
    putBelow(list, area, place);
    choose(0);
  };
  const look = async ({ isAsked }) => {
    place = area.selectionStart === area.selectionEnd ? placeIn(area.value, area.selectionStart) : null;
    // Without a letter, only who asks is bothered; after "kind: " one has to choose in any case.
    if (!place || (!isAsked && !place.half && !place.isValue)) return close();
    const asked = place;
    const named = await answers(known, url, place);
    if (asked !== place) return;
    show(fitting(named, place, isAsked));
  };
  const take = () => {
    const item = list.children[chosen];
    close();
    insert(area, place, item.dataset.name, item.dataset.type);
  };

  area.addEventListener("input", (event) => {
    clearTimeout(waiting);
    close();
    if (event.isTrusted || event.bubbles) waiting = setTimeout(() => look({ isAsked: false }), PAUSE_MS);
  });
  area.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      clearTimeout(waiting); // what was typed just before must not close the list again
      look({ isAsked: true });
    }
    if (!isOpen()) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) choose(chosen + step);
    else if (event.key === "Escape") close();
    else if (event.key === "Enter" || (event.key === "Tab" && !event.shiftKey)) take();
    else return;
    event.preventDefault();
    event.stopImmediatePropagation(); // the editor has these keys too
  });
  area.addEventListener("blur", close);
  area.addEventListener("scroll", close);
  area.addEventListener("click", close);
  list.addEventListener("mousedown", (event) => event.preventDefault()); // the text keeps the focus
  list.addEventListener("click", (event) => {
    const item = event.target.closest("[role=option]");
    if (!item) return;
    chosen = [...list.children].indexOf(item);
    take();
  });
}

function makeList(editor, area) {
  const list = document.createElement("ul");
  list.className = "suggestions";
  list.id = `${area.id}-suggestions`;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", editor.dataset.suggestionsName);
  list.hidden = true;
  editor.append(list);
  area.setAttribute("aria-autocomplete", "list");
  area.setAttribute("aria-controls", list.id);
  return list;
}

async function answers(known, url, place) {
  const query = new URLSearchParams({ apiVersion: place.apiVersion, kind: place.kind, path: place.path.join("\n"), what: place.isValue ? "values" : "fields" });
  const address = `${url}?${query}`;
  if (!known.has(address)) {
    const answer = await fetch(address, { credentials: "same-origin" });
    if (!answer.ok || answer.redirected) return [];
    known.set(address, (await answer.json()).named);
  }
  return known.get(address);
}

// Those that begin with what is typed, then those that contain it. What is typed out needs no list.
function fitting(named, place, isAsked) {
  const half = place.half.toLowerCase();
  const found = named.filter((each) => each.name.toLowerCase().includes(half) && (place.isValue || !place.there.has(each.name)));
  if (!isAsked && found.length === 1 && found[0].name === place.half) return [];
  const begins = (each) => each.name.toLowerCase().startsWith(half);
  return [...found.filter(begins), ...found.filter((each) => !begins(each))];
}

function itemOf(each, id) {
  const item = document.createElement("li");
  item.id = id;
  item.setAttribute("role", "option");
  item.dataset.name = each.name;
  item.dataset.type = each.type;
  const name = document.createElement("b");
  name.textContent = each.name;
  const about = document.createElement("small");
  about.textContent = [each.type, each.help].filter(Boolean).join(" · ");
  item.append(name, " ", about);
  return item;
}

function putBelow(list, area, place) {
  const lines = area.value.slice(0, area.selectionStart).split("\n");
  const style = getComputedStyle(area);
  const letter = widthOfLetter(style.font);
  const left = parseFloat(style.paddingLeft) + (lines.at(-1).length - place.half.length) * letter - area.scrollLeft;
  const top = parseFloat(style.paddingTop) + lines.length * LINE_PX - area.scrollTop;
  list.style.left = `${Math.max(0, Math.min(left, area.clientWidth - list.offsetWidth))}px`;
  list.style.top = `${Math.min(top, area.clientHeight)}px`;
}

function widthOfLetter(font) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = font;
  return context.measureText("m").width;
}

// With what comes next: a blank, or the indentation of the block.
function insert(area, place, name, type) {
  const inside = " ".repeat(place.column + 2);
  const ends = { object: `:\n${inside}`, array: `:\n${inside}- ` };
  const text = place.isValue ? name : name + (ends[type] ?? ": ");
  area.setSelectionRange(area.selectionStart - place.half.length, area.selectionStart);
  document.execCommand("insertText", false, text); // the only way that undo understands
}
