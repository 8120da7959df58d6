/**
 * What the benchmark of stateful sessions asks: a counter, the same as the peers have beside it, and state of any size,
 * after CESSNA's blind forwarder "which stored arbitrary state of a given size" (7.2.2).
 */
import { bytes, defineApp, type EnvOf, list, map, Session } from "sojourn";

const MB = 1_000_000;
/** An entry's bytes, about. */
const ENTRY_BYTES = 75;

/** Adds one. */
export class Counter extends Session {
  n = 0;

  add(): number {
    return ++this.n;
  }

  override onMessage(_message: string | Uint8Array, from: { send(message: string): void }): void {
    from.send(String(++this.n));
  }
}

/** The same, with its log at its clients. */
export class Shared extends Counter {
  static readonly durability = "hosts";
}

/** Holds bytes, or entries of a map and a list, and counts. */
export class Holder extends Session {
  all = bytes(0);
  entries = map<string, unknown>();
  items = list<unknown>();
  n = 0;

  /** So many more, so that a handler's time is kept. */
  fillBytes(megabytes: number): number {
    const from = this.all.length;
    this.all.resize(from + megabytes * MB);
    this.all.edit(from, this.all.length, (part) => {
      for (let i = 0; i < part.length; i++) part[i] = i * 31 + (i >> 8);
    });
    return ++this.n;
  }

  /** From one number on. */
  fillEntries(from: number, megabytes: number): number {
    const entry = (n: number) => ({ article: `article ${n}`, price: n / 4, tags: ["a", "b"], stock: n % 97 });
    for (let n = from; n < from + (megabytes * MB) / (2 * ENTRY_BYTES); n++) {
      this.entries.set(`key-${n}`, entry(n));
      this.items.push(entry(n));
    }
    return ++this.n;
  }

  /** It is over; its memory is another's. */
  drop(): void {
    this.end();
  }

  add(): number {
    if (this.all.length > 0) this.all.put(this.n % this.all.length, this.n);
    return ++this.n;
  }
}

/** The same, run along at another site. */
export class Standing extends Holder {
  static readonly standby = true;
}

type Env = EnvOf<
  Record<never, never>,
  { counter: Counter; shared: Shared; holder: Holder; standing: Standing }
>;

async function fetch(request: Request, env: Env): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  const id = searchParams.get("s") ?? "one";
  const mb = Number(searchParams.get("mb") ?? 0);
  const holder = env.sessions[searchParams.has("standing") ? "standing" : "holder"].get(id);
  switch (pathname) {
    case "/hello":
      return new Response("Hello");
    case "/count":
      return new Response(String(await env.sessions.counter.get(id).add()));
    case "/socket":
      return await env.sessions[searchParams.has("hosts") ? "shared" : "counter"].get(id).fetch(request);
    case "/held":
      return new Response(String(await holder.add()));
    case "/dropped":
      await holder.drop();
      return new Response("dropped");
    case "/bytes":
      return new Response(String(await holder.fillBytes(mb)));
    case "/entries":
      return new Response(
        String(await holder.fillEntries(Number(searchParams.get("from")), mb)),
      );
    default:
      return new Response("unknown", { status: 404 });
  }
}

export default defineApp({
  name: "stateful",
  sessions: { counter: Counter, shared: Shared, holder: Holder, standing: Standing },
  fetch,
});
