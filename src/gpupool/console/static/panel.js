// The panel of the map: a click on a card or pod changes the address, and the page follows it without
// being loaded again. Arrow keys lead from segment to segment, Escape closes the panel.

function watchPanel() {
  let opener = "";
  let wantsFocus = false;

  const show = (href) => {
    history.pushState(null, "", href);
    document.dispatchEvent(new CustomEvent("address-changed"));
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-panel]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    // On other pages these links lead to the map.
    if (link.pathname !== location.pathname) return;
    event.preventDefault();
    const closes = "panelClose" in link.dataset;
    if (!closes) opener = link.id;
    wantsFocus = !closes;
    show(link.href);
    if (closes) document.getElementById(opener)?.focus();
  });
  addEventListener("popstate", () => document.dispatchEvent(new CustomEvent("address-changed")));
  document.addEventListener("page-changed", () => {
    const title = document.getElementById("panel-title");
    if (wantsFocus && title) title.focus({ preventScroll: true });
    if (title) wantsFocus = false;
  });
  document.addEventListener("keydown", (event) => {
    const close = document.getElementById("panel-close");
    if (event.key === "Escape" && close && !document.querySelector("dialog[open]")) return close.click();
    if (event.key.startsWith("Arrow")) step(event);
  });
}

// Along the bar and from card to card; up and down to the nearest one in another line.
function step(event) {
  const from = event.target.closest?.(".gpu a");
  if (!from) return;
  const all = [...document.querySelectorAll(".gpu a")];
  const at = all.indexOf(from);
  const next = {
    ArrowLeft: () => all[at - 1],
    ArrowRight: () => all[at + 1],
    ArrowUp: () => nearest(from, all.slice(0, at).reverse(), -1),
    ArrowDown: () => nearest(from, all.slice(at + 1), 1),
  }[event.key]();
  if (!next) return;
  event.preventDefault();
  next.focus();
}

function nearest(from, others, direction) {
  const here = from.getBoundingClientRect();
  let best = null;
  for (const other of others) {
    const box = other.getBoundingClientRect();
    const down = direction * (box.top - here.top);
    if (down < 4) continue;
    // Lines come in order: what is further away than the first line is not nearer.
    if (best && down > best.down + 4) break;
    const aside = Math.abs(box.left - here.left);
    if (!best || aside < best.aside) best = { other, down, aside };
  }
  return best?.other;
}

watchPanel();
