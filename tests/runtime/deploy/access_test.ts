/** Who may call which admin path: every route that exists, whoever added it. */
import assert from "node:assert/strict";
import { ADMIN_ROLES, routeName } from "../../../runtime/admin/access.ts";
import { adminApp, type AdminServices } from "../../../runtime/admin/mod.ts";
import { AdminTokens, allows, ROLES } from "../../../runtime/deploy/mod.ts";

/** Whatever a handler asks its site for is there, and is no answer: a refused call must not come that far. */
function anything(): unknown {
  const deep: unknown = new Proxy(() => {}, {
    get: (_, name) => name === "then" || typeof name === "symbol" ? undefined : deep,
    apply: () => deep,
  });
  return deep;
}

const app = adminApp(anything() as AdminServices);
const routes = app.routes.filter((route) => route.method !== "ALL");
const tokens = new AdminTokens(ROLES.map((role) => `${role} token-with-the-role-${role}`).join("\n"));
const wrong = new Headers({ authorization: "Bearer token-of-nobody-at-all" });

Deno.test("every admin route needs a token with its role (N1)", async (t) => {
  assert(routes.length >= 6, "the routes were found");
  for (const route of routes) {
    const name = routeName(route);
    const needed = ADMIN_ROLES[name];
    const call = async (headers: Headers) => {
      const path = route.path.replaceAll(/:\w+(\{[^}]*\})?/g, "some");
      const request = new Request(`http://edge-1${path}`, { method: route.method });
      const answer = await app.fetch(request, { role: tokens.roleOf(headers) });
      return { status: answer.status, problem: await answer.json() as { code: string; detail: string } };
    };
    await t.step(name, async () => {
      assert(needed !== undefined, `${name} has no entry in ADMIN_ROLES (runtime/admin/access.ts)`);
      for (const headers of [new Headers(), wrong]) {
        const { status, problem } = await call(headers);
        assert.deepEqual([status, problem.code], [401, "admin_token_invalid"]);
      }
      for (const role of ROLES.filter((each) => !allows(each, needed))) {
        const { status, problem } = await call(
          new Headers({ authorization: `Bearer token-with-the-role-${role}` }),
        );
        assert.deepEqual([status, problem.code], [403, "admin_role"], role);
        assert.match(problem.detail, new RegExp(`the role ${needed}, not ${role}`));
      }
    });
  }
});

Deno.test("the table of roles has no route that is gone", () => {
  const known = new Set(routes.map(routeName));
  assert.deepEqual(Object.keys(ADMIN_ROLES).filter((name) => !known.has(name)), []);
});

Deno.test("docs/operating.md shows the role of every admin path", async () => {
  const page = await Deno.readTextFile(new URL("../../../docs/operating.md", import.meta.url));
  const shown = Object.fromEntries(
    [...page.matchAll(/^\| `([A-Z]+ \/[^`]*)` +\| `(\w+)` +\|/gm)].map((
      [, name = "", role = ""],
    ) => [name, role]),
  );
  assert.deepEqual(shown, { ...ADMIN_ROLES });
});

Deno.test("a path that is no admin path tells nothing to who has no token", async () => {
  const ask = async (role: "read" | null, init: RequestInit = {}) =>
    (await app.fetch(new Request("http://edge-1/_sojourn/admin/nothing", init), { role })).status;
  assert.equal(await ask(null), 401);
  assert.equal(await ask("read"), 501);
  assert.equal(await ask("read", { method: "POST" }), 403);
});

Deno.test("a line of admin tokens is a role, a token and perhaps a name (roles.ts RLE2)", () => {
  const held = new AdminTokens(
    "# rotated in May\nread 0123456789abcdef grafana # its own\n\ndeploy aaaaaaaaaaaaaaaa\nbbbbbbbbbbbbbbbb\n" +
      "read cccccccccccccccc#dddd #its own\n",
  );
  const holder = (token: string) => held.holderOf(new Headers({ authorization: `Bearer ${token}` }));
  const shown = (token: string) => {
    const found = holder(token);
    return found && `${found.role} ${found.name}`;
  };
  assert.equal(shown("0123456789abcdef"), "read grafana");
  assert.equal(shown("aaaaaaaaaaaaaaaa"), "deploy null");
  assert.equal(shown("bbbbbbbbbbbbbbbb"), "admin null");
  assert.equal(shown("cccccccccccccccc#dddd"), "read null");
  for (const token of ["cccccccccccccccc", "0123456789abcde", "0123456789abcdef0", "grafana", ""]) {
    assert.equal(shown(token), null, token);
  }
  const bad = [
    "short",
    "owner 0123456789abcdef",
    "read 0123456789abcde",
    "read 0123456789abcdef a b",
    "read 0123456789abcdef näme",
    "agent 0123456789abcdef",
    "agent: 0123456789abcdef",
    "agent:Shop 0123456789abcdef",
    "agent:shop/ 0123456789abcdef",
    "agent:shop/till/x 0123456789abcdef",
    "send 0123456789abcdef",
    "send:Shop 0123456789abcdef",
    "send:shop/ 0123456789abcdef",
    "send:shop/2nd 0123456789abcdef",
    "consume:shop/a/b 0123456789abcdef",
    "queue:shop 0123456789abcdef",
  ];
  for (const line of bad) {
    assert.throws(
      () => new AdminTokens(`# tokens\n${line}`),
      (error: unknown) =>
        error instanceof TypeError && /^line 2 /.test(error.message) && !error.message.includes(line),
      line,
    );
  }
});

Deno.test("a token of agents is of one app, or of one of its classes", () => {
  const held = new AdminTokens("agent:shop 0123456789abcdef till-1\nagent:shop/till aaaaaaaaaaaaaaaa\n");
  const holder = (token: string) => held.holderOf(new Headers({ authorization: `Bearer ${token}` }));
  assert.deepEqual(holder("0123456789abcdef"), {
    ...{ role: "agent", name: "till-1" },
    scope: { app: "shop", class: null },
  });
  assert.deepEqual(holder("aaaaaaaaaaaaaaaa"), {
    ...{ role: "agent", name: null },
    scope: { app: "shop", class: "till" },
  });
});

Deno.test("a token of queues sends or consumes, in an app or in one of its queues", () => {
  const held = new AdminTokens("send:shop 0123456789abcdef web\nconsume:shop/sms_1 aaaaaaaaaaaaaaaa\n");
  const holder = (token: string) => held.holderOf(new Headers({ authorization: `Bearer ${token}` }));
  assert.deepEqual(holder("0123456789abcdef"), {
    ...{ role: "queue", name: "web" },
    scope: { may: "send", app: "shop", queue: null },
  });
  assert.deepEqual(holder("aaaaaaaaaaaaaaaa"), {
    ...{ role: "queue", name: null },
    scope: { may: "consume", app: "shop", queue: "sms_1" },
  });
});
