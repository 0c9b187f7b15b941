// Two real identity providers on loopback for the browser tests: OpenID Connect (oidc-provider) and SAML (samlp).
// What they know about people is told by the test: POST /people {"name": {"subject": "…", "groups": ["…"]}}.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Provider } from "oidc-provider";

const samlp = createRequire(import.meta.url)("samlp");
const { OIDC_PORT, SAML_PORT, REDIRECT_URI, ACS_URL, KEY_FILE, CERT_FILE } = process.env;
const people = new Map();
const page = (text) => `<!doctype html><html lang="en"><title>Test provider</title><body>${text}</body></html>`;
const form = (action) =>
  page(`<h1>Test provider</h1><form method="post" action="${action}">
    <label>Name at the provider <input name="name"></label><button>Sign in</button></form>`);

function body(request) {
  return new Promise((resolve) => {
    let text = "";
    request.on("data", (part) => (text += part));
    request.on("end", () => resolve(text));
  });
}

function html(response, text) {
  response.setHeader("Content-Type", "text/html; charset=utf-8");
  response.end(text);
}

// -- OpenID Connect ---------------------------------------------------------------------------------------------------
const oidc = new Provider(`http://127.0.0.1:${OIDC_PORT}`, {
  clients: [{ client_id: "holdpoint", client_secret: "a secret of the tests", redirect_uris: [REDIRECT_URI] }],
  pkce: { required: () => true },
  claims: { openid: ["sub"], profile: ["preferred_username", "groups"], email: ["email"] },
  cookies: { keys: ["tests"] },
  features: { devInteractions: { enabled: false } },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  async findAccount(_, id) {
    const [name, known] = [...people].find(([, person]) => person.subject === id) ?? [];
    if (!known) return undefined;
    const claims = { sub: id, preferred_username: name, email: `${name}@clinic.example`, groups: known.groups };
    return { accountId: id, claims: async () => claims };
  },
  async loadExistingGrant(ctx) {
    const { client, session, provider } = ctx.oidc;
    const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
    grant.addOIDCScope("openid profile email");
    await grant.save();
    return grant;
  },
});
const answerOidc = oidc.callback();

createServer(async (request, response) => {
  const { pathname } = new URL(request.url, "http://127.0.0.1");
  if (pathname === "/people" && request.method === "POST") {
    for (const [name, person] of Object.entries(JSON.parse(await body(request)))) people.set(name, person);
    return response.end("ok");
  }
  if (!pathname.startsWith("/interaction/")) return answerOidc(request, response);
  if (request.method === "GET") return html(response, form(pathname));
  const known = people.get(new URLSearchParams(await body(request)).get("name"));
  if (!known) return html(response, page("<p>Unknown.</p>"));
  await oidc.interactionFinished(request, response, { login: { accountId: known.subject } });
}).listen(Number(OIDC_PORT), "127.0.0.1", () => console.log("oidc ready"));

// -- SAML -------------------------------------------------------------------------------------------------------------
class Profile {
  constructor(person) {
    this.person = person;
  }
  getClaims() {
    return { groups: this.person.groups, username: this.person.name };
  }
  getNameIdentifier() {
    return { nameIdentifier: this.person.subject, nameIdentifierFormat: "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent" };
  }
}

function saml(request, response, person) {
  // `flaw` makes an answer that must be refused.
  const flaw = person.flaw ?? "";
  request.user = person;
  response.set = (name, value) => response.setHeader(name, value);
  response.send = (text) => response.end(String(text));
  const answer = samlp.auth({
    issuer: "urn:tests:saml",
    cert: readFileSync(CERT_FILE),
    key: readFileSync(KEY_FILE),
    signAssertion: flaw !== "unsigned",
    lifetimeInSeconds: flaw === "late" ? -3600 : 60,
    ...(flaw === "audience" ? { audience: "urn:somebody:else" } : {}),
    ...(flaw === "unasked" ? { inResponseTo: "_of_nobody" } : {}),
    recipient: flaw === "recipient" ? "http://127.0.0.1/elsewhere" : ACS_URL,
    destination: ACS_URL,
    authnContextClassRef: "urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport",
    profileMapper: Object.assign((one) => new Profile(one), { prototype: Profile.prototype }),
    getPostURL: (audience, dom, req, callback) => callback(null, ACS_URL),
  });
  answer(request, response, (error) => {
    response.statusCode = 500;
    response.end(String(error));
  });
}

createServer(async (request, response) => {
  const address = new URL(request.url, "http://127.0.0.1");
  request.query = Object.fromEntries(address.searchParams);
  if (request.method === "GET") return html(response, form(`${address.pathname}${address.search.replaceAll("&", "&amp;")}`));
  const name = new URLSearchParams(await body(request)).get("name");
  const known = people.get(name);
  if (!known) return html(response, page("<p>Unknown.</p>"));
  request.method = "GET";
  request.body = {};
  saml(request, response, { ...known, name });
}).listen(Number(SAML_PORT), "127.0.0.1", () => console.log("saml ready"));
