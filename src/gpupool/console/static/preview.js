// While a form is filled in, the preview beside it shows what it would make and where that fits.
import { morph } from "./morph.js";

const PAUSE_MS = 250;

export function watchPreview() {
  const preview = document.querySelector("[data-preview]");
  const form = preview?.closest("form");
  if (!form) return;
  let waiting = 0;
  let asked = 0; // answers may come in another order than questions
  const renew = async () => {
    const number = ++asked;
    const body = new URLSearchParams(new FormData(form));
    body.delete("manifest");
    body.set("step", "preview");
    const answer = await fetch(form.action, { method: "POST", body, credentials: "same-origin", headers: { "X-Dialogue": "1" } });
    if (answer.redirected) return location.reload();
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("[data-preview]");
    if (number !== asked || !fresh) return;
    morph(preview, fresh.innerHTML);
    // The button in the preview says what it makes.
    document.getElementById("plain-create")?.toggleAttribute("hidden", answer.ok);
  };
  form.addEventListener("input", (event) => {
    if (event.target.type === "range") event.target.nextElementSibling.textContent = event.target.value;
    clearTimeout(waiting);
    waiting = setTimeout(renew, PAUSE_MS);
  });
  renew();
}
