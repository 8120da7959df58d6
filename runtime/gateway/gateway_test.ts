import { INERT } from "../telemetry/mod.ts";
import { RequestTelemetry } from "./request_telemetry.ts";
import assert from "node:assert/strict";
import { AppGateway, type AppGatewayServices } from "./app_gateway.ts";
import { Gateway } from "./gateway.ts";
import { SessionTokens } from "./session_tokens.ts";

/** A gateway whose site takes every token for a forged one: nothing behind the tokens is ever asked for. */
function refusingGateway(): Gateway {
  const tokens = new SessionTokens({
    seal: () => "",
    open: () => ({ ok: false, code: "token_forged", message: "made up" }),
  }, () => 0);
  const services = { tokens, headerBytesMax: 1_000, bodyBytesMax: 1_000 } as AppGatewayServices;
  const apps = new AppGateway(services);
  return new Gateway({
    telemetry: new RequestTelemetry("edge-1", INERT),
    apps: () => apps,
    sites: () => [],
    platform: () => new Response(),
    front: () => new Response(),
    link: () => Promise.resolve(),
    fault: () => {},
  });
}

async function locationFor(url: string): Promise<URL> {
  const request = new Request(url, { headers: { accept: "text/html", cookie: "sojourn_session=x" } });
  const gateway = refusingGateway();
  const answer = await gateway.handle(request, {
    remoteAddr: { transport: "tcp", hostname: "127.0.0.1", port: 9 },
  });
  gateway.close();
  assert.equal(answer.status, 303);
  return new URL(answer.headers.get("location") ?? "", url);
}

Deno.test("a navigation with a bad cookie is sent to the same place, and nowhere else", async () => {
  assert.equal((await locationFor("http://h/app/x?q=1")).href, "http://h/app/x?q=1");
  assert.equal((await locationFor("http://app.localhost/")).href, "http://app.localhost/");
  assert.equal((await locationFor("http://app.localhost//evil.example/x")).host, "app.localhost");
});
