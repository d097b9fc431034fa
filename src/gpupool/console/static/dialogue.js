// Actions open as a dialogue over the page, instead of a page of their own.
import { morph } from "./morph.js";
import { loadScripts } from "./scripts.js";

export function watchDialogues() {
  const dialogue = document.getElementById("dialogue");
  let opener = null;

  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-dialogue]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    opener = link;
    const answer = await ask(link.href);
    if (!answer.ok || answer.redirected) return location.assign(link.href);
    show(await answer.text());
  });

  dialogue.addEventListener("click", (event) => {
    const isOutside = event.target === dialogue;
    if (!isOutside && !event.target.closest("[data-close]")) return;
    event.preventDefault();
    dialogue.close();
  });
  dialogue.addEventListener("close", () => {
    dialogue.replaceChildren();
    opener?.focus();
  });

  dialogue.addEventListener("submit", async (event) => {
    event.preventDefault();
    const form = event.target;
    const button = event.submitter;
    if (button) button.disabled = true;
    try {
      const answer = await ask(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
      if (answer.headers.get("content-type")?.startsWith("application/json")) {
        finish(await answer.json());
      } else if (answer.redirected) {
        location.reload();
      } else {
        morph(dialogue, await answer.text());
        dialogue.querySelector("[aria-invalid], [role=alert]")?.focus();
      }
    } finally {
      if (button) button.disabled = false;
    }
  });

  function show(html) {
    morph(dialogue, html);
    loadScripts(dialogue);
    dialogue.showModal();
    dialogue.querySelector("input:not([type=hidden]), textarea, select, button")?.focus();
  }

  // The page shows the change by itself. Another one is opened only where the thing is gone from here.
  function finish({ href, words, isGone }) {
    dialogue.close();
    const isHere = !isGone && location.pathname.startsWith(new URL(href, location.href).pathname);
    const isList = opener?.closest("table, .panel");
    if (!isHere && !isList) return location.assign(href);
    const notice = document.getElementById("notice");
    notice.textContent = words;
    notice.hidden = false;
  }
}

function ask(url, options = {}) {
  return fetch(url, { credentials: "same-origin", ...options, headers: { "X-Dialogue": "1" } });
}
