// Says in words why a passkey did not work, instead of printing an exception.
(function () {
  const words = {
    NotAllowedError: "The passkey was not used: you cancelled, or it took too long.",
    SecurityError: "Passkeys do not work at this address. Open the page by its name (localhost, not 127.0.0.1), over HTTPS.",
    InvalidStateError: "This passkey is already registered.",
  };
  document.addEventListener("allauth.error", (event) => {
    const place = document.getElementById("passkey-error") || document.querySelector("main h1");
    if (!place) return;
    event.preventDefault();
    const error = event.detail.exception;
    const text = words[error.name] || "The passkey did not work. Try again, or use your password.";
    if (place.id === "passkey-error") {
      place.textContent = text;
      place.hidden = false;
    } else {
      const line = document.createElement("p");
      line.id = "passkey-error";
      line.className = "error";
      line.setAttribute("role", "alert");
      line.textContent = text;
      place.after(line);
    }
  });
})();
