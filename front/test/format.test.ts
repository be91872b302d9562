import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, bytes, compareCounts, duration, exact, integer, local, plural, rate, short, utc } from "../src/lib/format";

const plain = (text: string): string => text.replace(/[\u202f\u00a0]/g, " ");

test("64-bit integers keep every digit", () => {
  assert.equal(plain(exact("9223372036854775807")), "9 223 372 036 854 775 807");
  assert.equal(plain(exact("-9223372036854775808")), "-9 223 372 036 854 775 808");
  assert.equal(integer("9007199254740993")?.toString(), "9007199254740993");
  assert.equal(integer("1.5"), null);
  assert.equal(integer(undefined), null);
});

test("counts are short with three digits, exact below ten thousand", () => {
  const cases: [string, string][] = [
    ["0", "0"],
    ["9999", "9 999"],
    ["10000", "10.0 k"],
    ["999499", "999 k"],
    ["999500", "1.00 M"],
    ["1234567", "1.23 M"],
    ["-1234567", "-1.23 M"],
    ["9223372036854775807", "9.22 E"],
  ];
  for (const [value, text] of cases) assert.equal(plain(short(value)), text);
  assert.equal(short("n/a"), "n/a");
  assert.equal(short(null), "");
});

test("sizes are in binary units", () => {
  assert.equal(plain(bytes(0)), "0 B");
  assert.equal(plain(bytes(1023)), "1023 B");
  assert.equal(plain(bytes("1048576")), "1.00 MiB");
  assert.equal(plain(bytes(1536)), "1.50 KiB");
});

test("durations show two units", () => {
  const cases: [number, string][] = [
    [0, "0 ms"],
    [450, "450 ms"],
    [12_345, "12 s"],
    [200_000, "3 min 20 s"],
    [18_120_000, "5 h 2 min"],
    [86_400_000, "1 d"],
    [-5000, "-5 s"],
  ];
  for (const [value, text] of cases) assert.equal(plain(duration(value)), text);
  assert.equal(duration(null), "");
  assert.equal(duration(Infinity), "");
  assert.equal(plain(ago(1000, 61_000)), "1 min ago");
  assert.equal(plain(ago(61_000, 1000)), "in 1 min");
  assert.equal(ago(5, 6), "now");
});

test("rates keep small ones visible", () => {
  assert.equal(rate(0.354), "0.35/s");
  assert.equal(rate(0), "0/s");
  assert.equal(plain(rate(123_456)), "123 k/s");
  assert.equal(rate(NaN), "");
});

test("times are local, with UTC beside", () => {
  assert.match(local(1_764_309_425_123), /^2025-11-2\d \d\d:\d\d:\d\d\.123$/);
  assert.equal(local(-1), "no timestamp");
  assert.equal(utc(0), "1970-01-01T00:00:00.000Z (0 ms)");
  assert.equal(local(9e15), "9000000000000000");
});

test("plurals and order", () => {
  assert.equal(plain(plural(1, "topic")), "1 topic");
  assert.equal(plain(plural("0", "topic")), "0 topics");
  assert.ok(compareCounts("9007199254740993", "9007199254740992") > 0);
  assert.ok(compareCounts(null, "-5") < 0);
  assert.equal(compareCounts("10", 10n), 0);
});
