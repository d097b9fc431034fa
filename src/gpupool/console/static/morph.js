// Changes a part of the page into new HTML, and touches only what is different. So the place on the
// page, the focus, a selection, an open <details> and what is half typed stay as they are.
//
// Children with an id keep their identity: a row that moved is moved, not written anew. Elements with
// data-keep belong to the browser once they are there.

export function morph(old, html) {
  const parsed = new DOMParser().parseFromString(`<body>${html}</body>`, "text/html");
  const focused = document.activeElement;
  morphChildren(old, parsed.body);
  // A row that was moved has lost the focus of what is in it.
  if (old.contains(focused) && focused !== document.activeElement) focused.focus({ preventScroll: true });
}

function morphChildren(old, fresh) {
  const known = new Map();
  for (const child of old.children) if (child.id) known.set(child.id, child);
  let next = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    // Blanks at the beginning are lost in parsing: all that follows would seem to be at another place.
    while (isBlank(next) && wanted.nodeType === Node.ELEMENT_NODE) {
      const blank = next;
      next = next.nextSibling;
      blank.remove();
    }
    const match = findMatch(next, wanted, known);
    if (!match) {
      old.insertBefore(document.importNode(wanted, true), next);
    } else {
      if (match === next) next = next.nextSibling;
      else old.insertBefore(match, next);
      morphNode(match, wanted);
    }
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

function isBlank(node) {
  return node?.nodeType === Node.TEXT_NODE && !node.data.trim();
}

function findMatch(next, wanted, known) {
  if (wanted.id) {
    const found = known.get(wanted.id);
    return found && found.nodeName === wanted.nodeName ? found : null;
  }
  // Without an id: the element at the same place, if it is of the same kind.
  return next && next.nodeName === wanted.nodeName && !next.id ? next : null;
}

function morphNode(old, wanted) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== wanted.nodeValue) old.nodeValue = wanted.nodeValue;
    return;
  }
  if ("keep" in old.dataset) return;
  morphAttributes(old, wanted);
  // What a person is typing or choosing is theirs until they leave it.
  if (old.matches("input, textarea, select")) {
    if (old === document.activeElement) return;
    if (old.nodeName === "SELECT") morphChildren(old, wanted);
    if (old.nodeName !== "SELECT" && old.defaultValue !== wanted.defaultValue) old.value = wanted.value;
    return;
  }
  if (old.isEqualNode(wanted)) return;
  morphChildren(old, wanted);
}

function morphAttributes(old, wanted) {
  for (const { name, value } of wanted.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    // Whether a <details> is open is the reader's choice.
    const isTheirs = name === "open" && old.nodeName === "DETAILS";
    if (!isTheirs && !wanted.hasAttribute(name)) old.removeAttribute(name);
  }
}
