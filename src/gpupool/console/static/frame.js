// Small conveniences of the frame: filters that apply at once, copying, keys.

const PAUSE_MS = 350;

// A list is searched while one types. The address changes, so that the view can be sent on.
export function watchFilters() {
  let waiting = 0;
  const submit = (form) => {
    const query = new URLSearchParams(new FormData(form));
    for (const [key, value] of [...query]) if (!value) query.delete(key);
    const address = `${location.pathname}?${query}`;
    if (address === location.pathname + location.search) return;
    // The search field keeps the focus on the next page.
    const focused = document.activeElement?.id;
    if (focused) sessionStorage.setItem("focus", focused);
    location.assign(address);
  };
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-submit-on-change]");
    if (form) submit(form);
  });
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-submit-on-change]");
    if (!form || event.target.nodeName === "SELECT") return;
    clearTimeout(waiting);
    waiting = setTimeout(() => submit(form), PAUSE_MS);
  });
  const field = document.getElementById(sessionStorage.getItem("focus") ?? "");
  sessionStorage.removeItem("focus");
  if (field) {
    field.focus();
    field.setSelectionRange?.(field.value.length, field.value.length);
  }
}

export function watchCopying() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const text = button.parentElement.querySelector("code").textContent;
    await navigator.clipboard.writeText(text);
    const words = button.textContent;
    button.textContent = "✓";
    setTimeout(() => (button.textContent = words), 1200);
  });
}

// "/" leads to the search of a list, as in many consoles.
export function watchKeys() {
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.matches?.("input, textarea, select");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
    const field = document.querySelector("input[type=search]");
    if (!field) return;
    event.preventDefault();
    field.focus();
  });
}

// The list of clusters closes when one looks elsewhere.
export function watchSwitch() {
  const list = document.getElementById("switch");
  if (!list) return;
  document.addEventListener("click", (event) => {
    if (!list.contains(event.target)) list.open = false;
  });
  list.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    list.open = false;
    list.querySelector("summary").focus();
  });
}
