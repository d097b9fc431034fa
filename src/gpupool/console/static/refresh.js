// Renews what is shown every few seconds, without losing the place on the page or what is typed.
const EVERY_MS = 5000;

async function renew() {
  const typing = document.activeElement && document.activeElement.matches("input");
  if (document.hidden || typing) return;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (answer.redirected) return location.reload();
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const [old, fresh] = [document, page].map((each) => each.querySelector("main"));
    if (fresh && old.innerHTML !== fresh.innerHTML) old.replaceWith(fresh);
    document.body.classList.toggle("stale", !answer.ok);
  } catch {
    document.body.classList.add("stale"); // the console is gone; what is shown is old
  }
}

setInterval(renew, EVERY_MS);
