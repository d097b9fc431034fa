// The search box: Ctrl-K from any page, arrow keys and Enter lead to what was found.

const PAUSE_MS = 150;
const MOST = 12;

export function watchSearch() {
  const box = document.getElementById("search");
  const opener = document.querySelector("[data-search]");
  if (!box || !opener) return;
  const field = box.querySelector("input");
  const list = box.querySelector("ul");
  const state = box.querySelector("[role=status]");
  let waiting = 0;
  let answered = "";
  let asked = 0; // answers may come in another order than questions

  const open = (event) => {
    event.preventDefault();
    if (!box.open) box.showModal();
    field.select();
  };
  const choose = (next) => {
    for (const each of list.children) each.setAttribute("aria-selected", each === next);
    field.setAttribute("aria-activedescendant", next?.id ?? "");
    next?.scrollIntoView({ block: "nearest" });
  };
  const chosen = () => list.querySelector("[aria-selected=true]");

  const ask = async () => {
    const number = ++asked;
    const text = field.value.trim();
    const rows = text ? await found(opener.href, text) : [];
    if (number !== asked) return;
    answered = text;
    list.replaceChildren(...rows.slice(0, MOST).map(drawRow));
    state.textContent = text && !rows.length ? state.dataset.none : "";
    choose(list.firstElementChild);
  };

  opener.addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    const isOurs = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey;
    // In a terminal the key is the shell's.
    if (isOurs && !event.defaultPrevented) open(event);
  });
  field.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(ask, PAUSE_MS);
  });
  field.addEventListener("keydown", async (event) => {
    if (event.key === "ArrowDown") choose(chosen()?.nextElementSibling ?? list.firstElementChild);
    else if (event.key === "ArrowUp") choose(chosen()?.previousElementSibling ?? list.lastElementChild);
    else if (event.key === "Enter") {
      event.preventDefault();
      // What was typed last may not be asked for yet.
      clearTimeout(waiting);
      if (answered !== field.value.trim()) await ask();
      chosen()?.querySelector("a").click();
      return;
    } else return;
    event.preventDefault();
  });
  box.addEventListener("click", (event) => event.target === box && box.close());
}

// The search page answers; its rows are the list.
async function found(address, text) {
  const url = new URL(address);
  url.searchParams.set("q", text);
  const answer = await fetch(url, { credentials: "same-origin" });
  if (!answer.ok || answer.redirected) return [];
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return [...page.querySelectorAll("#table tbody tr")].map((row) => {
    const [name, kind, namespace] = row.children;
    return { name: name.textContent.trim(), href: name.querySelector("a").getAttribute("href"), kind: kind.textContent.trim(), namespace: namespace.textContent.trim() };
  });
}

function drawRow({ name, href, kind, namespace }, i) {
  const row = document.createElement("li");
  const link = document.createElement("a");
  const note = document.createElement("small");
  row.id = `found-${i}`;
  row.setAttribute("role", "option");
  link.href = href;
  link.tabIndex = -1;
  link.textContent = name;
  note.textContent = `${kind} ${namespace === "–" ? "" : namespace}`;
  link.append(" ", note);
  row.append(link);
  return row;
}
