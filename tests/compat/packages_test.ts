/** Packages from npm that nobody here wrote, unchanged: routers, validators, CommonJS, rendering. */
import assert from "node:assert/strict";
import { bundleText, runApp } from "./apps.ts";

interface Package {
  readonly code: string;
  readonly path?: string;
  readonly init?: RequestInit;
  readonly answer: string | RegExp;
}

const PACKAGES: Readonly<Record<string, Package>> = {
  "itty-router": {
    code: `
      import { AutoRouter, error } from "npm:itty-router@6.0.0";
      const router = AutoRouter();
      router.get("/items/:id", ({ id, query }) => id === "0" ? error(404, "none") : { id, query });
      export default { fetch: (request: Request) => router.fetch(request) };`,
    path: "/items/7?a=1",
    answer: `{"id":"7","query":{"a":"1"}}`,
  },
  "h3": {
    code: `
      import { getQuery, H3, readBody } from "npm:h3@2.0.8";
      const app = new H3();
      app.post("/echo", async (event) => ({ body: await readBody(event), query: getQuery(event) }));
      export default app;`,
    path: "/echo?a=1",
    init: { method: "POST", body: `{"b":2}`, headers: { "content-type": "application/json" } },
    answer: `{"body":{"b":2},"query":{"a":"1"}}`,
  },
  "@hono/zod-validator": {
    code: `
      import { Hono } from "hono";
      import { zValidator } from "npm:@hono/zod-validator@0.9.1";
      import { z } from "zod";
      const app = new Hono();
      app.get("/", zValidator("query", z.object({ n: z.coerce.number() })), (c) => c.json(c.req.valid("query")));
      export default app;`,
    path: "/?n=7",
    answer: `{"n":7}`,
  },
  "jose": {
    code: `
      import { jwtVerify, SignJWT } from "npm:jose@6.2.17";
      const key = new TextEncoder().encode("k".repeat(32));
      export default {
        async fetch(): Promise<Response> {
          const token = await new SignJWT({ a: 1 }).setProtectedHeader({ alg: "HS256" }).sign(key);
          return Response.json((await jwtVerify(token, key)).payload);
        },
      };`,
    answer: `{"a":1}`,
  },
  "lodash (CommonJS)": {
    code: `
      import _ from "npm:lodash@4.18.1";
      export default { fetch: () => Response.json(_.chunk([1, 2, 3], 2)) };`,
    answer: "[[1,2],[3]]",
  },
  "yaml (CommonJS, asks for node:process)": {
    code: `
      import { parse } from "npm:yaml@2.9.1";
      export default { fetch: () => Response.json(parse("a: [1, b]")) };`,
    answer: `{"a":[1,"b"]}`,
  },
  "react-dom (streams HTML)": {
    code: `
      import { createElement, Suspense, use } from "npm:react@19.3.1";
      import { renderToReadableStream } from "npm:react-dom@19.3.1/server.edge";
      const Late = ({ data }: { data: Promise<string> }) => createElement("b", null, use(data));
      export default {
        async fetch(): Promise<Response> {
          const data = new Promise<string>((resolve) => setTimeout(resolve, 5, "late"));
          const page = createElement(Suspense, { fallback: "wait" }, createElement(Late, { data }));
          return new Response(await renderToReadableStream(createElement("main", null, page)));
        },
      };`,
    answer: /<main>.*wait.*<b>late<\/b>/s,
  },
};

for (const [name, { code, path = "/", init, answer }] of Object.entries(PACKAGES)) {
  Deno.test(`${name} runs unmodified`, async () => {
    await using app = await runApp(code);
    const text = await (await app.fetch(path, init)).text();
    if (typeof answer === "string") assert.equal(text, answer);
    else assert.match(text, answer);
  });
}

Deno.test("node:process is the isolate's own, however it is imported", async () => {
  await using app = await runApp({
    "app.ts": `
      import process from "node:process";
      import * as all from "node:process";
      import { cwd, default as again, env as given } from "process";
      import { other } from "./other.ts";
      const failure = (work: () => unknown) => { try { return work(); } catch (error) { return String(error); } };
      export default {
        fetch: () => Response.json([
          process.env["NAME"], given["NAME"], all.env["NAME"], again === process, cwd(), other(),
          process === globalThis.process, failure(() => process.exit(1)), process.on("exit", () => {}) === process,
        ]),
      };`,
    "other.ts": `import { platform } from "node:process";\nexport const other = () => platform;`,
  }, { vars: { NAME: "given" } });
  assert.deepEqual(await (await app.fetch("/")).json(), [
    "given",
    "given",
    "given",
    true,
    "/",
    "linux",
    true,
    "TypeError: process.exit is not available in a function: a function cannot end its isolate",
    true,
  ]);
});

/** A Hono project as its starter for Workers makes one: package.json, tsconfig.json, JSX, imports without extensions. */
const PROJECT: Readonly<Record<string, string>> = {
  "package.json": `{
    "name": "my-app",
    "dependencies": { "hono": "4.13.19", "router": "npm:itty-router@6.0.0", "mine": "file:../mine" },
    "devDependencies": { "itty-router": "^6.0.0" }
  }`,
  "tsconfig.json": `{
    "compilerOptions": {
      "strict": true, // as the starter has it
      "jsx": "react-jsx",
      "jsxImportSource": "hono/jsx",
      "paths": { "@/*": ["./*"] },
    },
  }`,
  "index.tsx": `
    import { Hono } from "hono";
    import { json } from "router";
    import { text } from "itty-router";
    import { Page } from "./page";
    import { title } from "@/title";
    const app = new Hono();
    app.get("/", (c) => c.html(<Page title={title} />));
    app.get("/json", () => json([typeof text]));
    export default app;`,
  "page.tsx": `export const Page = ({ title }: { title: string }) => <h1>{title}</h1>;`,
  "title.ts": `export const title = "Hello";`,
};

Deno.test("a project made for npm and Workers runs as it is", async () => {
  await using app = await runApp(PROJECT, { entry: "index.tsx" });
  assert.equal(await (await app.fetch("/")).text(), "<h1>Hello</h1>");
  assert.equal(await (await app.fetch("/json")).text(), `["function"]`);
});

Deno.test("a project's broken or missing parts are named where it is bundled", async () => {
  const cases: readonly (readonly [file: string, text: string, says: RegExp])[] = [
    ["package.json", `{ "dependencies": `, /package\.json is not JSON/],
    ["package.json", `{ "dependencies": { "hono": 4 } }`, /package\.json: dependencies\.hono: /],
    ["tsconfig.json", `[]`, /tsconfig\.json: /],
    ["title.ts", `export { title } from "mine";`, /"mine" not a dependency/],
  ];
  for (const [file, text, says] of cases) {
    await assert.rejects(bundleText({ ...PROJECT, [file]: text }, "index.tsx"), says, file);
  }
});
