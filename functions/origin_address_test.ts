import assert from "node:assert/strict";
import { originAddress } from "./origin_address.ts";

const READ: readonly (readonly [text: string, url: string, kind: string, host: string, port: number])[] = [
  ["ws://Chat.example", "ws://chat.example/", "ws", "chat.example", 80],
  ["wss://chat.example:8443/room?a=1", "wss://chat.example:8443/room?a=1", "ws", "chat.example", 8443],
  ["http://127.1:80/", "http://127.0.0.1", "http", "127.0.0.1", 80],
  ["https://api.example", "https://api.example", "http", "api.example", 443],
  ["tcp://10.0.0.7:80", "tcp://10.0.0.7:80", "tcp", "10.0.0.7", 80],
  ["tcp://[::1]:7000", "tcp://[::1]:7000", "tcp", "[::1]", 7000],
];

for (const [text, url, kind, host, port] of READ) {
  Deno.test(`an origin's address ${text} reads as ${url}`, () => {
    const address = originAddress(text);
    assert.deepEqual(
      address && [address.url, address.kind, address.host, address.port],
      [url, kind, host, port],
    );
    assert.equal(originAddress(url)?.url, url, "O1");
  });
}

for (
  const text of [
    "",
    "chat.example",
    "ftp://chat.example",
    "WS://chat.example",
    "tcp://chat.example",
    "tcp://chat.example:0",
    "tcp://chat.example:70000",
    "tcp://chat.example:7/path",
    "http://api.example/base",
    "http://api.example?a",
    "http://u:p@api.example",
    "ws://chat.example/#a",
    "ws://chat.example/#",
    "ws:///chat.example",
    "ws:chat.example",
    "http://a b",
  ]
) {
  Deno.test(`${JSON.stringify(text)} is no origin's address`, () => assert.equal(originAddress(text), null));
}
