// Tells while somebody types what is wrong with a manifest, at its line. The server reads it (pages/checks.py).

const PAUSE_MS = 500;

// `mark` is given the numbers of the lines that are wrong. `told`: lines that the form itself told of.
export function startChecks(editor, area, told, mark) {
  const url = editor.dataset.checks;
  const words = document.getElementById(`${area.id}-found`);
  if (!url || !words) return;
  let waiting = 0;
  const show = (wrong) => {
    mark(wrong.map((each) => each.line).filter(Boolean));
    words.textContent = wrong.map((each) => each.words).join("\n");
  };
  const look = async (known = []) => {
    const text = area.value;
    const answer = await fetch(url, { method: "POST", body: text, credentials: "same-origin" });
    if (text !== area.value) return; // somebody went on typing, and is answered next
    const wrong = answer.ok && !answer.redirected ? (await answer.json()).wrong : [];
    show(wrong.filter((each) => !known.includes(each.line)));
  };
  area.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => look().catch(() => show([])), PAUSE_MS);
  });
  // The API server names its first mistake only: those that were marked before stay marked.
  if (area.getAttribute("aria-invalid") === "true") look(told).catch(() => {});
}
