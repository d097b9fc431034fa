// A form and its YAML beside it: what is changed in one of them comes into the other, and what it would
// make, and where that fits, is said. The server joins the two (form_join.py).
import { morph } from "./morph.js";

const PAUSE_MS = 250;

function watchPreview() {
  const state = document.querySelector("[data-preview]");
  const form = state?.closest("form");
  if (!form) return;
  let waiting = 0;
  let asked = 0; // answers may come in another order than questions
  const renew = async () => {
    const number = ++asked;
    const sent = filledIn(form);
    const answer = await fetch(form.action, { method: "POST", body: sent, credentials: "same-origin", headers: { "X-Dialogue": "1" } });
    if (answer.redirected) return location.reload();
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("[data-preview]");
    // Somebody went on typing: the next answer knows of that, and of all that this one knows.
    if (number !== asked || !fresh || filledIn(form).toString() !== sent.toString()) return;
    morph(state, fresh.innerHTML);
    if (answer.ok) take(page);
    mark(page);
    // The button in the preview says what it makes.
    document.getElementById("plain-create")?.toggleAttribute("hidden", answer.ok);
  };
  form.addEventListener("input", (event) => {
    showNumber(event.target);
    clearTimeout(waiting);
    waiting = setTimeout(renew, PAUSE_MS);
  });
  renew();
}

function filledIn(form) {
  const values = new URLSearchParams(new FormData(form));
  values.set("step", "preview");
  return values;
}

function take(page) {
  for (const fresh of page.querySelectorAll("input[id], select[id], textarea[id]")) {
    const field = document.getElementById(fresh.id);
    if (!field || field.value === fresh.value) continue;
    field.value = fresh.value;
    showNumber(field);
    field.dispatchEvent(new Event("input")); // for its editor; it does not reach the form
  }
}

function showNumber(field) {
  if (field.type === "range") field.nextElementSibling.textContent = field.value;
}

function mark(page) {
  const lines = page.querySelector("[data-editor]")?.dataset.wrong ?? "";
  document.getElementById("field-manifest")?.dispatchEvent(new CustomEvent("marks", { detail: lines }));
}

watchPreview();
