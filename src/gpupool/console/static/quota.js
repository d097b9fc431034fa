// The form of a new cluster counts its nodes while one types, and says when a quota forbids them.

function watchQuotas() {
  document.addEventListener("input", (event) => count(event.target.closest("form")));
  document.querySelectorAll("form").forEach(count);
}

function count(form) {
  const shown = form?.querySelector("[data-limit]");
  if (!shown) return;
  const limit = Number(shown.dataset.limit);
  let sum = 0;
  for (const field of form.querySelectorAll("input[name$=-count]")) {
    const pool = form.querySelector(`input[name=${field.name.replace("-count", "-name")}]`);
    const source = form.querySelector(`select[name=${field.name.replace("-count", "-source")}]`);
    const chosen = form.querySelectorAll(`input[name=${field.name.replace("-count", "-machines")}]:checked`);
    if (pool && !pool.value.trim()) continue;
    sum += source?.value === "existing" ? chosen.length : Number(field.value) || 0;
  }
  const isOver = sum > limit;
  const words = isOver ? shown.dataset.over : shown.dataset.words;
  shown.textContent = words.replaceAll("{sum}", sum).replaceAll("{limit}", limit);
  shown.className = isOver ? "error" : "help";
}

watchQuotas();
