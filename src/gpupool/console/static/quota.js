// The form of a new cluster counts its nodes while one types, and says when a quota forbids them.

function watchQuotas() {
  document.addEventListener("input", (event) => count(event.target.closest("form")));
  document.querySelectorAll("form").forEach(count);
}

function count(form) {
  const shown = form?.querySelector("[data-limits]");
  if (!shown) return;
  const limits = JSON.parse(shown.dataset.limits);
  let sum = 0;
  for (const field of form.querySelectorAll("input[name$=-count]")) {
    const pool = form.querySelector(`input[name=${field.name.replace("-count", "-name")}]`);
    const source = form.querySelector(`select[name=${field.name.replace("-count", "-source")}]`);
    const chosen = form.querySelectorAll(`input[name=${field.name.replace("-count", "-machines")}]:checked`);
    if (pool && !pool.value.trim()) continue;
    sum += source?.value === "existing" ? chosen.length : wholeNumber(field.value);
  }
  const over = Object.keys(limits).filter((name) => sum > limits[name]);
  const words = over.length ? shown.dataset.over : shown.dataset.words;
  shown.textContent = words
    .replaceAll("{sum}", sum)
    .replaceAll("{limit}", Math.min(...Object.values(limits)))
    .replaceAll("{quotas}", over.map((name) => `${name}=${sum}`).join(" "));
  shown.className = over.length ? "error" : "help";
}

// What the server would refuse counts as nothing; it says why.
function wholeNumber(text) {
  return /^\s*\d+\s*$/.test(text) ? Number(text) : 0;
}

watchQuotas();
