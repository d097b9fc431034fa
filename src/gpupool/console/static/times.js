// Ages grow by themselves: 45s, 5m, 3h, 12d, as the server writes them.

const STEPS = [[86400, "d"], [3600, "h"], [60, "m"]];

export function keepTimes() {
  setInterval(renew, 1000);
  document.addEventListener("page-changed", renew);
}

function renew() {
  const now = Date.now() / 1000;
  for (const element of document.querySelectorAll("time[datetime]")) {
    const at = Date.parse(element.dateTime) / 1000;
    if (Number.isNaN(at)) continue;
    const text = ageOf(Math.max(0, now - at));
    if (element.textContent !== text) element.textContent = text;
  }
}

function ageOf(seconds) {
  if (seconds < 120) return `${Math.floor(seconds)}s`;
  for (const [size, letter] of STEPS) {
    if (seconds >= 2 * size || size === 60) return `${Math.floor(seconds / size)}${letter}`;
  }
  return "";
}
