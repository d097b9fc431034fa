// Where the cursor is in a manifest: of which object, below which fields, and what is half typed. Only
// lines and their indentation are looked at, because the text is not YAML while somebody types.

const LINE = /^( *)((?:- +)*)(?:("[^"]*"|'[^']*'|[^\s#:"'[\]{}][^\s:]*)\s*:(?:\s|$))?/;

// null: nothing can be suggested here. `isValue`: after the colon of the last field of the path.
export function placeIn(text, offset) {
  const before = text.slice(0, offset);
  const after = text.slice(offset).split("\n", 1)[0];
  const all = text.split("\n");
  const number = before.split("\n").length - 1;
  const [first, last] = documentAround(all, number);
  const typed = before.slice(before.lastIndexOf("\n") + 1);
  if (after.trim() && !/^\s*#/.test(after)) return null; // in the middle of something
  const key = /^( *)((?:- +)*)([\w./-]*)$/.exec(typed);
  const value = /^( *)((?:- +)*)([\w./-]+): +([\w./-]*)$/.exec(typed);
  if (!key && !value) return null;
  const [, spaces, dashes, word, half] = key ?? value;
  const column = spaces.length + dashes.length;
  const path = pathTo(all.slice(first, number), dashes ? spaces.length + 1 : column);
  const document = all.slice(first, last);
  return {
    apiVersion: topOf(document, "apiVersion"),
    kind: topOf(document, "kind"),
    path: value ? [...path, word] : path,
    isValue: !key,
    half: (key ? word : half) ?? "",
    column,
    there: siblingsOf(all, first, last, number, column),
  };
}

// The names of the fields that open the block in which something stands: those above it that are less
// indented, each time the next one. A dash is one column of its own: "- name" can be at the place of its parent.
function pathTo(lines, limit) {
  const path = [];
  for (let at = lines.length - 1; at >= 0 && limit > 0; at--) {
    const line = lines[at];
    if (!line.trim() || /^\s*#/.test(line)) continue;
    const [, spaces, dashes, name] = LINE.exec(line);
    const column = spaces.length + dashes.length;
    if (name && column < limit) {
      path.unshift(plain(name));
      limit = dashes ? spaces.length + 1 : column;
    } else if (dashes && spaces.length < limit) {
      limit = spaces.length + 1;
    } else if (!name && !dashes && spaces.length < limit) {
      return []; // a text of several lines, or no YAML: nobody knows
    }
  }
  return path;
}

function documentAround(lines, number) {
  let [first, last] = [0, lines.length];
  lines.forEach((line, at) => {
    if (!/^---(\s|$)/.test(line)) return;
    if (at < number) first = at + 1;
    else if (at > number && last === lines.length) last = at;
  });
  return [first, last];
}

function topOf(lines, name) {
  const found = lines.find((line) => line.startsWith(`${name}:`));
  return found ? plain(found.slice(name.length + 1).replace(/\s#.*$/, "").trim()) : "";
}

// The fields that are there already, in the same block.
function siblingsOf(lines, first, last, number, column) {
  const names = new Set();
  for (const step of [-1, 1]) {
    let isDone = step > 0 ? false : startsItem(lines[number]);
    for (let at = number + step; at >= first && at < last && !isDone; at += step) {
      const line = lines[at];
      if (!line.trim()) continue;
      const [, spaces, dashes, name] = LINE.exec(line);
      const place = spaces.length + dashes.length;
      if (step > 0 && dashes && spaces.length < column) break; // the next item
      if (place < column) break;
      if (place === column && name) names.add(plain(name));
      isDone = step < 0 && Boolean(dashes) && spaces.length < column; // where this item begins
    }
  }
  return names;
}

function startsItem(line) {
  return /^ *- /.test(line);
}

function plain(name) {
  return name.replace(/^(["'])(.*)\1$/, "$2");
}
