import { strict as assert } from "node:assert";
import { ConfigError } from "./config.ts";
import { AdminTokenFile } from "./admin_token_file.ts";

const bearer = (token: string) => new Headers({ authorization: `Bearer ${token}` });
const OLD = "0123456789abcdef-old";
const NEW = "0123456789abcdef-new";

Deno.test("an admin token file that changes is read again, and one that is bad changes nothing (F1, F2)", async (t) => {
  const path = await Deno.makeTempFile();
  const notes: [string, Record<string, unknown>][] = [];
  let nowMs = 0;
  try {
    await Deno.writeTextFile(path, `deploy ${OLD} ci\n`);
    const file = AdminTokenFile.open(path, (event, fields) => void notes.push([event, fields]), () => nowMs);
    const later = (token: string) => {
      nowMs += 1_000;
      return file.holderOf(bearer(token));
    };
    const rows: [says: string, text: string | null, old: string | null, fresh: string | null][] = [
      ["written anew", `deploy ${OLD} ci\n`, "ci", null],
      ["with another token", `deploy ${OLD} ci\nread ${NEW} new\n`, "ci", "new"],
      ["without the old one", `read ${NEW} new\n`, null, "new"],
      ["that is no list", `emperor ${OLD}\n`, null, "new"],
      ["that is gone", null, null, "new"],
      ["that is empty", "", null, null],
      ["with the old one again", `${OLD}`, "none", null],
    ];
    for (const [says, text, old, fresh] of rows) {
      await t.step(says, async () => {
        if (text === null) await Deno.remove(path);
        else await Deno.writeTextFile(path, text);
        const name = (token: string) => {
          const holder = later(token);
          return holder === null ? null : holder.name ?? "none";
        };
        assert.deepEqual([name(OLD), name(NEW)], [old, fresh]);
      });
    }
    assert.deepEqual(notes.map(([event]) => event), [
      "admin_tokens_read",
      "admin_tokens_read",
      "admin_tokens_read",
      "admin_tokens_unread",
      "admin_tokens_unread",
      "admin_tokens_read",
      "admin_tokens_read",
    ]);
    assert.doesNotMatch(JSON.stringify(notes), /0123456789abcdef|emperor/);
  } finally {
    await Deno.remove(path).catch(() => {});
  }
});

Deno.test("a site does not start with a bad admin token file", async () => {
  const path = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(path, "# tokens\nread short\n");
    assert.throws(
      () => AdminTokenFile.open(path, () => {}),
      (error: unknown) => error instanceof ConfigError && /line 2 .*at least 16/.test(error.message),
    );
  } finally {
    await Deno.remove(path);
  }
  assert.throws(() => AdminTokenFile.open(path, () => {}), ConfigError);
});
