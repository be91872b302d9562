// An OpenID provider: node-oidc-provider with one client, people by the name that they type, and keys that are new at each start.
// node provider.mjs PORT CONSOLE SECRET METHOD

import { generateKeyPairSync, randomBytes } from "node:crypto";
import { Provider } from "oidc-provider";

const [port, home, secret, method] = process.argv.slice(2);
const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const key = { ...privateKey.export({ format: "jwk" }), kid: randomBytes(6).toString("hex"), use: "sig", alg: "ES256" };
const client = {
  client_id: "tidelog-console",
  redirect_uris: [`${home}api/v1/login/oidc/callback`],
  post_logout_redirect_uris: [home],
  response_types: ["code"],
  grant_types: ["authorization_code"],
  id_token_signed_response_alg: "ES256",
  token_endpoint_auth_method: method,
};
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [method === "none" ? client : { ...client, client_secret: secret }],
  jwks: { keys: [key] },
  claims: { openid: ["sub"], groups: ["groups"] },
  scopes: ["openid", "groups"],
  conformIdTokenClaims: true, // claims of scopes are in userinfo only
  pkce: { required: () => true },
  cookies: { keys: [randomBytes(16).toString("hex")] },
  features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true } },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, groups: id === "eve" ? ["strangers"] : ["staff"] }) }),
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
