/** The board as its users meet it, in HTML and JSON, over a store in memory. */
import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { MemoryStore } from "../../functions/memory_store.ts";
import { rowsAt } from "./answers.ts";
import { nicknameOf, passwordOf } from "./generator.ts";
import { load, postJson, type Send } from "./loader.ts";
import { ADMIN_TOKEN, localEdge } from "./local.ts";
import { smallData } from "./small_data.ts";

type Body = Readonly<Record<string, unknown>>;

interface Browser {
  json(path: string, form?: unknown): Promise<{ status: number; body: Body }>;
  html(
    path: string,
    form?: Record<string, string>,
  ): Promise<{ status: number; text: string; location: string }>;
}

function browser(send: Send, session: string): Browser {
  const headers: Record<string, string> = { "sojourn-session": session };
  const keepCookies = (response: Response) => {
    for (const cookie of response.headers.getSetCookie()) headers["cookie"] = cookie.split(";")[0] ?? "";
  };
  return {
    json: async (path, form) => {
      const response = await send(path, {
        headers: { ...headers, accept: "application/json", "content-type": "application/json" },
        ...form === undefined ? {} : { method: "POST", body: JSON.stringify(form) },
      });
      keepCookies(response);
      return { status: response.status, body: await response.json() };
    },
    html: async (path, form) => {
      const response = await send(path, {
        headers,
        ...form === undefined ? {} : { method: "POST", body: new URLSearchParams(form) },
      });
      keepCookies(response);
      return {
        status: response.status,
        text: await response.text(),
        location: response.headers.get("location") ?? "",
      };
    },
  };
}

async function board(): Promise<{ send: Send; open: (session: string) => Browser }> {
  const store = new MemoryStore();
  const { send } = localEdge("edge-1", () => store);
  await load(smallData().data(), send, ADMIN_TOKEN);
  return { send, open: (session) => browser(send, session) };
}

Deno.test("every page answers in both forms", async () => {
  const { open } = await board();
  const { json, html } = open("reader");
  const { body } = await json("/");
  const [story] = rowsAt(body, "stories");
  const old = rowsAt((await json("/older?to=2026-01-20")).body, "stories");
  const paths = [
    "/",
    "/browse",
    "/categories",
    "/categories/c1",
    "/older?from=2026-01-01&to=2026-01-20",
    "/search",
    "/search/stories?q=a",
    "/search/comments?q=a",
    "/search/users?q=user1",
    "/register",
    "/login",
    "/submit",
    "/submissions",
    `/stories/${story?.key[0]}`,
    `/stories/${old[0]?.key[0]}`,
    `/stories/${story?.key[0]}/reply`,
  ];
  for (const path of paths) {
    strictEqual((await json(path)).status, 200, path);
    const page = await html(path);
    strictEqual(page.status, 200, path);
    match(page.text, /<h1>[^<]+<\/h1>/, path);
  }
});

Deno.test("stories are listed newest first, twenty a page, across both tables, each once", async () => {
  const { open } = await board();
  const { json } = open("reader");
  const ids: string[] = [];
  const sizes: number[] = [];
  for (let path = "/older";;) {
    const { body } = await json(path);
    const page = rowsAt(body, "stories").map((row) => row.key[0] ?? "");
    ids.push(...page);
    sizes.push(page.length);
    if (body["next"] === null) break;
    path = `/older?before=${body["next"]}`;
  }
  deepStrictEqual(ids, ids.toSorted().reverse());
  strictEqual(new Set(ids).size, 60);
  deepStrictEqual(sizes.slice(0, 3), [20, 20, 20]);
});

Deno.test("a reader registers, submits, comments and answers; an author accepts and moderates", async () => {
  const { open } = await board();
  const reader = open("reader"), author = open("author");
  const person = { nickname: "Ada", firstName: "Ada", lastName: "L", email: "ada@example.org" };
  strictEqual((await reader.json("/submissions", { title: "t", body: "b", category: "c1" })).status, 401);
  strictEqual((await reader.json("/accounts", { ...person, password: "short" })).status, 400);
  strictEqual((await reader.json("/accounts", { ...person, password: "long enough" })).status, 201);
  strictEqual(
    (await reader.json("/accounts", { ...person, nickname: "ADA", password: "long enough" })).status,
    409,
  );
  strictEqual((await author.json("/logins", { nickname: "ada", password: "wrong" })).status, 401);

  const submitted = await reader.json("/submissions", {
    title: "Tides",
    body: "They come and go.",
    category: "c1",
  });
  const id = rowsAt(submitted.body, "submission")[0]?.key[0];
  strictEqual((await reader.json(`/submissions/${id}/accept`, {})).status, 403);
  const credentials = { nickname: nicknameOf(0), password: passwordOf(0) };
  strictEqual((await author.json("/logins", credentials)).status, 201);
  strictEqual((await author.json(`/submissions/${id}/accept`, {})).status, 201);
  strictEqual((await author.json(`/submissions/${id}/accept`, {})).status, 404);

  const posted = await reader.html(`/stories/${id}/comments`, { to: "", subject: "First", text: "Hello" });
  strictEqual(posted.status, 303);
  const ref = posted.location.split("/").at(-1) ?? "";
  await author.html(`/stories/${id}/comments`, { to: ref, subject: "Re: First", text: "Hello back" });
  strictEqual((await author.json(`/stories/${id}/comments/${ref}/moderate`, { rating: 1 })).status, 201);
  const { body } = await reader.json(`/stories/${id}/comments/${ref}`);
  deepStrictEqual((body["counts"] as Body)[ref], { children: 1, rating: 2 });
  strictEqual(rowsAt(body, "comments").length, 1);
  match((await reader.html(`/stories/${id}`)).text, /1 answer/);
  strictEqual(rowsAt((await author.json("/moderations")).body, "moderations").length, 1);
});

Deno.test("the first to register is an author, who adds categories and makes authors", async () => {
  const { send } = localEdge("edge-1", () => store);
  const store = new MemoryStore();
  const first = browser(send, "first"), second = browser(send, "second");
  const person = { firstName: "A", lastName: "B", email: "a@example.org", password: "long enough" };
  await first.json("/accounts", { ...person, nickname: "ada" });
  const { body } = await second.json("/accounts", { ...person, nickname: "bob" });
  strictEqual((await second.json("/categories", { name: "Tides" })).status, 403);
  strictEqual((await first.json("/categories", { name: "The Sea!" })).status, 201);
  match((await first.html("/categories")).text, /categories\/the-sea-/);
  const bob = rowsAt(body, "user")[0]?.key[0];
  strictEqual((await second.json(`/users/${bob}/author`, {})).status, 403);
  strictEqual((await first.html(`/users/${bob}/author`, {})).status, 303);
  await second.json("/logins", { nickname: "bob", password: person.password });
  strictEqual((await second.json("/categories", { name: "Tides" })).status, 201);
});

Deno.test("a rating below the filter hides a comment", async () => {
  const { open } = await board();
  const { json } = open("reader");
  const { body } = await json("/");
  const [story] = rowsAt(body, "stories");
  await json(`/stories/${story?.key[0]}/comments`, { subject: "x", text: "by nobody" });
  const all = (await json(`/stories/${story?.key[0]}?filter=-1`)).body;
  const best = (await json(`/stories/${story?.key[0]}?filter=5`)).body;
  ok((all["shown"] as unknown[]).length > (best["shown"] as unknown[]).length);
});

Deno.test("archiving moves stories with their comments, and pages go on showing them", async () => {
  const { send, open } = await board();
  const { json } = open("reader");
  const before = (await json("/older")).body;
  const [first] = rowsAt(before, "stories");
  strictEqual(first?.table, "stories");
  for (let moved = 1; moved > 0;) {
    const answer = await postJson(send, "/admin/archive", JSON.stringify({ olderThanDays: 0 }), ADMIN_TOKEN);
    moved = (answer as { moved: number }).moved;
  }
  const after = (await json("/older")).body;
  const ids = (body: Body) => rowsAt(body, "stories").map((row) => row.key[0]);
  deepStrictEqual(ids(after), ids(before));
  strictEqual(rowsAt(after, "stories")[0]?.table, "oldStories");
  strictEqual((await json(`/stories/${first?.key[0]}`)).status, 200);
});

Deno.test("the operator's routes are closed without the token", async () => {
  const { send } = await board();
  for (const authorization of ["", "Bearer ", "Bearer wrong"]) {
    const response = await send("/admin/rows", { method: "POST", headers: { authorization }, body: "{}" });
    strictEqual(response.status, 403);
    await response.body?.cancel();
  }
});

Deno.test("titles are text, whatever they say", async () => {
  const { open } = await board();
  const { json, html } = open("reader");
  const { body } = await json("/");
  const [story] = rowsAt(body, "stories");
  await json(`/stories/${story?.key[0]}/comments`, { subject: "<script>alert(1)</script>", text: "x" });
  const { text } = await html(`/stories/${story?.key[0]}`);
  ok(!text.includes("<script>"));
});
