// Proof on the card: the server answers a press with an event, the dialog asks, and the same form goes out again with
// the answer. One press, one prompt, one vote. Cancelling decides nothing.
import { say } from "./live.js";

const TITLES = { signature: "Sign your answer", passkey: "Confirm that it is you" };
const LABELS = { code: "Code from your authenticator app, or a recovery code", password: "Password" };
const part = (name) => document.getElementById(`prove-${name}`);

let asked = null;
let form = null;

const toBytes = (text) =>
  Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));

function toText(buffer) {
  const letters = [...new Uint8Array(buffer)].map((byte) => String.fromCharCode(byte)).join("");
  return btoa(letters).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

function optionsOf(given) {
  const allowed = (given.allowCredentials || []).map((one) => ({ ...one, id: toBytes(one.id) }));
  return { ...given, challenge: toBytes(given.challenge), allowCredentials: allowed };
}

function proofOf(credential) {
  const { authenticatorData, clientDataJSON, signature, userHandle } = credential.response;
  if (asked.kind === "signature") {
    return {
      challenge_id: asked.challenge_id,
      credential_id: toText(credential.rawId),
      authenticator_data: toText(authenticatorData),
      client_data_json: toText(clientDataJSON),
      signature: toText(signature),
    };
  }
  return {
    id: credential.id,
    rawId: toText(credential.rawId),
    type: credential.type,
    clientExtensionResults: {},
    response: {
      authenticatorData: toText(authenticatorData),
      clientDataJSON: toText(clientDataJSON),
      signature: toText(signature),
      userHandle: userHandle ? toText(userHandle) : null,
    },
  };
}

function setHidden(name, value) {
  let field = form.querySelector(`input[name="${name}"]`);
  if (!field) {
    field = document.createElement("input");
    field.type = "hidden";
    field.name = name;
    form.append(field);
  }
  field.value = value;
}

function clearProof() {
  if (form) form.querySelectorAll('input[name^="proof"]').forEach((field) => field.remove());
}

function fail(text) {
  part("error").textContent = text;
  part("error").hidden = false;
  part("go").disabled = false;
  part("go").focus();
}

function send(proof) {
  if (!form.isConnected) return fail("The card has changed meanwhile. Close this, read it again and decide.");
  setHidden("proof_kind", asked.kind);
  setHidden("proof", proof);
  document.getElementById("prove").close("sent");
  window.htmx.trigger(form, "submit");
}

async function askAuthenticator() {
  part("error").hidden = true;
  part("go").disabled = true;
  if (!window.PublicKeyCredential) return fail("This browser has no passkeys.");
  try {
    const credential = await navigator.credentials.get({ publicKey: optionsOf(asked.options) });
    send(JSON.stringify(proofOf(credential)));
  } catch {
    fail("The passkey did not answer, or it was cancelled. Nothing was decided.");
  }
}

function ask(detail, source) {
  asked = detail;
  form = source.closest("form");
  clearProof();
  const byKey = detail.kind === "signature" || detail.kind === "passkey";
  const verb = detail.verb.charAt(0).toUpperCase() + detail.verb.slice(1);
  part("title").textContent = TITLES[detail.kind] || TITLES.passkey;
  part("what").textContent = `${verb}: ${detail.what}`;
  part("passkey").hidden = !byKey;
  part("field").hidden = byKey;
  part("label").textContent = LABELS[detail.kind] || "";
  const value = part("value");
  value.value = "";
  value.type = detail.kind === "password" ? "password" : "text";
  value.autocomplete = detail.kind === "password" ? "current-password" : "one-time-code";
  value.required = !byKey;
  part("go").textContent = byKey ? "Use the passkey" : verb;
  part("go").disabled = false;
  part("other").hidden = !detail.elsewhere;
  part("other").querySelector("a").href = detail.elsewhere || "#";
  // Not called `error`: htmx prints an event's detail of that name to the console.
  part("error").hidden = !detail.refused;
  part("error").textContent = detail.refused;
  document.getElementById("prove").showModal();
  say(`${part("title").textContent}. ${part("what").textContent}`);
  if (byKey && !detail.refused) askAuthenticator();
  else (byKey ? part("go") : value).focus();
}

export function startProve() {
  if (!document.getElementById("prove")) return;
  document.addEventListener("review-proof", (event) => ask(event.detail, event.target));
  part("form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!part("field").hidden) send(part("value").value);
    else askAuthenticator();
  });
  part("cancel").addEventListener("click", () => document.getElementById("prove").close());
  document.getElementById("prove").addEventListener("close", () => {
    part("value").value = "";
    if (document.getElementById("prove").returnValue === "sent") document.getElementById("prove").returnValue = "";
    else clearProof();
  });
}
