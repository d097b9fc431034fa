// The button says what it will do: "Create 1 Deployment, 1 Service".

function nameWhatIsCreated() {
  const button = document.querySelector("[data-creates]");
  const area = document.getElementById("field-manifest");
  if (!button || !area) return;
  const renew = () => {
    const what = kindsIn(area.value);
    button.textContent = what ? button.dataset.creates.replace("{what}", what) : button.dataset.plain;
  };
  area.addEventListener("input", renew);
  // In the field for its name, Enter keeps the template. It must not create anything.
  document.getElementById("field-keep")?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    document.querySelector("button[value=keep]").click();
  });
  renew(); // somebody may have typed before this ran
}

// As `kinds_in` of pages/create.py.
function kindsIn(text) {
  const counts = new Map();
  for (const [, kind] of text.matchAll(/^kind: *["']?([A-Za-z]+)/gm)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].map(([kind, count]) => `${count} ${kind}`).join(", ");
}

nameWhatIsCreated();
