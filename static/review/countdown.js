// Time left, in words and for screen readers. At zero the card is asked again at once.
const MINUTE = 60_000;
const passed = new Set();

export function left(milliseconds) {
  const minutes = Math.floor(milliseconds / MINUTE);
  if (milliseconds <= 0) return "expired";
  if (minutes < 1) return `${Math.ceil(milliseconds / 1000)} s left`;
  if (minutes < 60) return `${minutes} min left`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min left`;
  return `${Math.floor(hours / 24)} days left`;
}

function show(element, now) {
  const deadline = Date.parse(element.dataset.countdown || element.getAttribute("datetime"));
  const rest = deadline - now;
  const words = left(rest);
  if (element.textContent !== words) {
    element.textContent = words;
    if (element.dataset.until) element.setAttribute("aria-label", `Time left: ${words}, until ${element.dataset.until}`);
  }
  const urgent = rest < 15 * MINUTE;
  if (element.classList.contains("urgent") !== urgent) element.classList.toggle("urgent", urgent);
  if (rest <= 0 && element.getAttribute("role") === "timer" && !passed.has(element.dataset.countdown)) {
    passed.add(element.dataset.countdown);
    document.dispatchEvent(new CustomEvent("review-changed"));
  }
}

export function showAll() {
  const now = Date.now();
  document.querySelectorAll("[data-countdown]").forEach((element) => show(element, now));
}

export function startCountdowns() {
  showAll();
  setInterval(showAll, 1000);
  document.addEventListener("htmx:afterSwap", showAll);
  document.addEventListener("review-live", showAll);
}
