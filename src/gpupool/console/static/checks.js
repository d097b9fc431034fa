// Tells while somebody types what is wrong with a manifest, at its line. The server reads it (pages/checks.py).

const PAUSE_MS = 500;

// `mark` is given the numbers of the lines that are wrong.
export function startChecks(editor, area, mark) {
  const url = editor.dataset.checks;
  const words = document.getElementById(`${area.id}-found`);
  if (!url || !words) return;
  let waiting = 0;
  const show = (wrong) => {
    mark(wrong.map((each) => each.line).filter(Boolean));
    words.textContent = wrong.map((each) => each.words).join("\n");
  };
  const look = async () => {
    const text = area.value;
    const answer = await fetch(url, { method: "POST", body: text, credentials: "same-origin" });
    if (text !== area.value) return; // somebody went on typing, and is answered next
    show(answer.ok && !answer.redirected ? (await answer.json()).wrong : []);
  };
  area.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => look().catch(() => show([])), PAUSE_MS);
  });
}
