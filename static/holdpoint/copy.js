// Buttons that copy the text of another element. Without the clipboard (plain http elsewhere than here) they stay hidden.
for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const said = document.querySelector("[data-copied]");
    try {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      said.textContent = "Copied.";
    } catch {
      said.textContent = "Your browser does not allow this page to copy. Select the text and copy it yourself.";
    }
  });
}
