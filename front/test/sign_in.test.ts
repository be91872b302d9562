import assert from "node:assert/strict";
import { test } from "node:test";
import { signInFailure, signInLink } from "../src/lib/sign_in";

test("the login leads back to the page that was asked for, without the last failure", () => {
  assert.equal(signInLink(""), "api/v1/login/oidc");
  assert.equal(signInLink("?login=failed"), "api/v1/login/oidc");
  const to = (place: string): string | null => new URLSearchParams(signInLink(place).split("?")[1]).get("to");
  assert.equal(to("main/topics/a%2Fb"), "main/topics/a%2Fb");
  assert.equal(to("main/topics/orders?filter=a+%26+b&login=denied"), "main/topics/orders?filter=a+%26+b");
});

test("a failure is one of the known ones, never a text of the address", () => {
  assert.match(signInFailure("?login=no-role") ?? "", /no role/);
  assert.equal(signInFailure("?login=<b>pay here</b>"), null);
  assert.equal(signInFailure("?login=constructor"), null);
  assert.equal(signInFailure(""), null);
});
