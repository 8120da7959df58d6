/** @jsxImportSource hono/jsx */
/** An app of Hono's features, as its own documentation and runtime tests use them. */
import { Hono } from "hono";
import { stripVTControlCharacters } from "node:util";
import { HTTPException } from "hono/http-exception";
import { basicAuth } from "hono/basic-auth";
import { bearerAuth } from "hono/bearer-auth";
import { bodyLimit } from "hono/body-limit";
import { cache } from "hono/cache";
import { compress } from "hono/compress";
import { cors } from "hono/cors";
import { csrf } from "hono/csrf";
import { deleteCookie, getCookie, getSignedCookie, setCookie, setSignedCookie } from "hono/cookie";
import { contextStorage, getContext } from "hono/context-storage";
import { env, getRuntimeKey } from "hono/adapter";
import { etag } from "hono/etag";
import { getConnInfo, upgradeWebSocket } from "hono/deno";
import { upgradeWebSocket as upgradeWebSocketWorkers } from "hono/cloudflare-workers";
import { jsxRenderer } from "hono/jsx-renderer";
import { Suspense } from "hono/jsx/streaming";
import { sign, verify } from "hono/jwt";
import { logger } from "hono/logger";
import { poweredBy } from "hono/powered-by";
import { prettyJSON } from "hono/pretty-json";
import { requestId } from "hono/request-id";
import { secureHeaders } from "hono/secure-headers";
import { stream, streamSSE, streamText } from "hono/streaming";
import { timeout } from "hono/timeout";
import { endTime, setMetric, startTime, timing } from "hono/timing";
import { validator } from "hono/validator";
import { z } from "zod";
import type { FC, PropsWithChildren } from "hono/jsx";

const app = new Hono();
const Page: FC<PropsWithChildren<{ title: string }>> = ({ title, children }) => (
  <html>
    <body>
      <h1>{title}</h1>
      {children}
    </body>
  </html>
);
const Late = async () => {
  await new Promise((r) => setTimeout(r, 5));
  return <p>late</p>;
};

app.get("/jsx", (c) => c.html(<Page title="<&>">{[1, 2].map((n) => <li key={n}>{n}</li>)}</Page>));
app.get("/jsx-async", (c) => c.html(<Late />));
app.use(
  "/rendered/*",
  jsxRenderer(({ children }) => (
    <html>
      <body>{children}</body>
    </html>
  ), { stream: true }),
);
app.get("/rendered/", (c) =>
  c.render(
    <Suspense fallback={<i>wait</i>}>
      <Late />
    </Suspense>,
  ));

app.use("/basic/*", basicAuth({ username: "ann", password: "secret" }));
app.get("/basic/", (c) => c.text("in"));
app.use("/bearer/*", bearerAuth({ token: "token" }));
app.get("/bearer/", (c) => c.text("in"));
app.get("/jwt", async (c) => c.json(await verify(await sign({ a: 1 }, "key", "HS256"), "key", "HS256")));

app.get("/etag", etag(), (c) => c.text("tagged"));
app.use(
  "/cors/*",
  cors({ origin: "http://other.example", allowMethods: ["GET", "PUT"], maxAge: 60, credentials: true }),
);
app.all("/cors/", (c) => c.text("cors"));
app.use("/compress/*", compress());
app.get("/compress/", (c) => c.text("x".repeat(5000)));
app.post("/csrf", csrf(), (c) => c.text("done"));
app.get("/cached", cache({ cacheName: "mine", cacheControl: "max-age=60" }), (c) => c.text(String(++calls)));
let calls = 0;

app.get("/cookies", async (c) => {
  setCookie(c, "plain", "1", { httpOnly: true, path: "/", maxAge: 10, sameSite: "Lax" });
  await setSignedCookie(c, "signed", "value", "secret");
  deleteCookie(c, "old");
  return c.json({ plain: getCookie(c, "plain"), signed: await getSignedCookie(c, "secret", "signed") });
});

app.get("/stream", (c) =>
  stream(c, async (s) => {
    for (const n of [1, 2, 3]) {
      await s.write(new Uint8Array([48 + n]));
      await s.sleep(1);
    }
  }));
app.get("/stream-text", (c) =>
  streamText(c, async (s) => {
    await s.writeln("one");
    await s.write("two");
  }));
app.get("/stream-pipe", (c) => stream(c, (s) => s.pipe(new Blob(["piped"]).stream())));
app.get("/sse", (c) =>
  streamSSE(c, async (s) => {
    for (let id = 0; id < 3; id++) await s.writeSSE({ data: "a\nb", event: "tick", id: String(id) });
  }));
app.get("/stream-error", (c) =>
  stream(c, () => {
    throw new Error("in a stream");
  }, async (error, s) => void await s.write("caught " + error.message)));

app.post(
  "/validated/:id",
  validator("param", (value, c) => z.coerce.number().safeParse(value["id"]).data ?? c.text("no number", 400)),
  validator(
    "json",
    (value, c) =>
      z.object({ name: z.string().min(2) }).safeParse(value).data ?? c.json({ error: "name" }, 400),
  ),
  (c) => c.json([c.req.valid("param"), c.req.valid("json")]),
);
app.post("/form", async (c) => {
  const { file, many, text } = await c.req.parseBody({ all: true });
  return c.json([file instanceof File && [file.name, await file.text()], many, text]);
});
app.post(
  "/limited",
  bodyLimit({ maxSize: 10, onError: (c) => c.text("too large", 413) }),
  async (c) => c.text(await c.req.text()),
);

app.get("/timing", timing({ total: true }), async (c) => {
  setMetric(c, "region", "eu");
  startTime(c, "db");
  await new Promise((r) => setTimeout(r, 2));
  endTime(c, "db");
  return c.text("timed");
});
app.get("/timeout", timeout(20), async (c) => {
  await new Promise((r) => setTimeout(r, 10_000));
  return c.text("late");
});
app.use("/headers", secureHeaders(), poweredBy(), requestId(), prettyJSON());
app.get("/headers", (c) => c.json({ id: c.get("requestId") }));
app.get("/logged", logger((line) => console.log(stripVTControlCharacters(line))), (c) => c.text("x"));

app.get(
  "/runtime",
  (c) => c.json([getRuntimeKey(), env<{ NAME: string }>(c).NAME, getConnInfo(c).remote.address]),
);
app.use("/context/*", contextStorage());
app.get("/context/", async (c) => {
  c.set("who" as never, "ann" as never);
  await Promise.resolve();
  return c.text(getContext().get("who" as never));
});
app.get("/later", (c) => {
  c.executionCtx.waitUntil(Promise.resolve().then(() => console.log("waited")));
  return c.text("now");
});
app.get(
  "/socket",
  upgradeWebSocket(() => ({
    onOpen: (_, ws) => ws.send("open"),
    onMessage: (event, ws) => ws.send("got " + event.data),
    onClose: (event) => console.log("closed " + event.code),
  })),
);
app.get(
  "/socket-workers",
  upgradeWebSocketWorkers(() => ({
    onMessage: (event, ws) => ws.send("workers got " + event.data),
  })),
);
app.get("/file/*", (c) => c.text("not there: use assets", 404));

const books = new Hono().basePath("/v1");
books.get("/books/:id{[0-9]+}", (c) => c.json(c.req.param()));
books.get("/fail", () => {
  throw new HTTPException(418, { message: "teapot" });
});
app.route("/api", books);
app.mount("/mounted", (request) => new Response("mounted " + new URL(request.url).pathname));
app.get("/redirect", (c) => c.redirect("/there", 301));
app.get(
  "/query",
  (c) => c.json([c.req.query("a"), c.req.queries("b"), c.req.header("x-a"), c.req.path, c.req.method]),
);
app.on(["PURGE", "DELETE"], "/purge", (c) => c.text(c.req.method));
app.post("/raw", async (c) => {
  const copy = c.req.raw.clone();
  return c.json([(await copy.text()).length, (await c.req.arrayBuffer()).byteLength]);
});
app.get("/fail", () => {
  throw new Error("handler failed");
});
app.notFound((c) => c.text("nothing at " + c.req.path, 404));
app.onError((error, c) =>
  error instanceof HTTPException ? error.getResponse() : c.text("onError: " + error.message, 500)
);
export default app;
