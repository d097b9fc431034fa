// Follows the page that is open: the server sends its new HTML whenever something has changed.
import { morph } from "./morph.js";
import { loadScripts } from "./scripts.js";

const RETRY_MS = 3000;

export function followPage() {
  let source = null;
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(location.href);
    source.addEventListener("page", (event) => {
      showOffline(false);
      morph(document.getElementById("page"), event.data);
      loadScripts(document.getElementById("page"));
      document.dispatchEvent(new CustomEvent("page-changed"));
    });
    // The session is over: the page is asked for once more, and leads to the sign-in page.
    source.addEventListener("signed-out", () => location.reload());
    source.onerror = () => {
      const isOver = source.readyState === EventSource.CLOSED;
      showOffline(true);
      close();
      setTimeout(isOver ? ask : open, RETRY_MS);
    };
  };
  // The server does not stream any more: it ended the session, or the thing is not there.
  const ask = async () => {
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (answer.redirected || answer.status === 404) return location.reload();
    } catch {
      // Not there yet: `open` tries again.
    }
    open();
  };
  const close = () => {
    source?.close();
    source = null;
  };
  // A page that nobody looks at costs nothing.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  // The same page with another query: its panel has changed.
  document.addEventListener("address-changed", () => {
    close();
    open();
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
}

function showOffline(isOffline) {
  const notice = document.getElementById("notice");
  if (isOffline) {
    notice.textContent = document.body.dataset.offline;
    notice.classList.add("trouble");
    notice.hidden = false;
  } else if (notice.classList.contains("trouble")) {
    notice.classList.remove("trouble");
    notice.hidden = true;
  }
}
