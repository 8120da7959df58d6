/**
 * The client library's host: its way to the platform, a page of a browser or a program of Deno. It is the only file of
 * `functions/` that touches the platform.
 *
 * Nothing here decides anything: it passes on.
 */
import { ClientError } from "./client_error.ts";
import type {
  ClientHost,
  ClientStorage,
  Socket,
  SocketListener,
  SocketOptions,
  StorageChange,
} from "./ports.ts";
import { folderOf, replaceFile, syncFolder } from "./replace_file.ts";
import { MemoryClientStorage } from "./storage.ts";

/** Parts of the platform that are not in every platform's types. */
interface Platform {
  readonly location?: { readonly href: string };
  readonly Deno?: typeof Deno;
  readonly indexedDB?: Databases;
  readonly navigator?: { readonly locks?: Locks };
}
const platform = globalThis as unknown as Platform;

/** Returns the host for the page or program that this runs in. */
export function platformHost(): ClientHost {
  return {
    base: platform.location?.href ?? null,
    nowMs: () => performance.now(),
    after: (ms, run) => {
      const timer = setTimeout(run, ms);
      return () => clearTimeout(timer);
    },
    fetch: (input, init) => globalThis.fetch(input, init),
    open: openSocket,
    openElsewhere: (url, protocols) => new WebSocket(url, protocols),
    // A page that came over plain HTTP has no crypto.randomUUID.
    draw: () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-"),
    number: () => {
      const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
      return (high & 0xffff) * 2 ** 32 + low + 1;
    },
  };
}

function openSocket(url: string, { protocols, tokens }: SocketOptions, listener: SocketListener): Socket {
  const token = tokens.join(",");
  let socket: WebSocket;
  if (platform.Deno !== undefined) {
    const headers: HeadersInit = token === "" ? {} : { "sojourn-session": token };
    socket = new WebSocket(url, { protocols: [...protocols], headers });
  } else {
    const at = new URL(url);
    if (token !== "") at.searchParams.set("sojourn_session", token);
    socket = new WebSocket(at.href, [...protocols]);
  }
  socket.binaryType = "arraybuffer";
  socket.onopen = () => listener.opened(socket.protocol);
  socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) =>
    listener.message(typeof data === "string" ? data : new Uint8Array(data));
  // An error is followed by a close, in browsers at once; Deno has been seen to leave it out.
  const end = ({ code = 1006, reason = "" }: { code?: number; reason?: string }) => {
    socket.onclose =
      socket.onerror =
      socket.onopen =
      socket.onmessage =
        null;
    listener.closed(code, reason);
  };
  socket.onclose = end;
  socket.onerror = () => end({});
  return {
    get bufferedAmount() {
      return socket.bufferedAmount;
    },
    send: (data) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(data);
    },
    close: (code, reason) => {
      if (socket.readyState < WebSocket.CLOSING) socket.close(code, reason);
    },
  };
}

// ── Storage of a page ──

interface Request<T> {
  readonly result: T;
  readonly error: unknown;
  onsuccess: (() => void) | null;
  onerror: (() => void) | null;
}
interface Store {
  put(value: Uint8Array, key: string): void;
  delete(key: string): void;
  getAllKeys(range?: unknown): Request<string[]>;
  getAll(range?: unknown): Request<Uint8Array[]>;
}
interface Transaction {
  readonly error: unknown;
  objectStore(name: string): Store;
  oncomplete: (() => void) | null;
  onabort: (() => void) | null;
}
interface Database {
  createObjectStore(name: string): void;
  transaction(name: string, mode: string, options?: { durability: string }): Transaction;
  close(): void;
}
interface Databases {
  open(name: string, version: number): Request<Database> & { onupgradeneeded: (() => void) | null };
}
interface Locks {
  request(
    name: string,
    options: { readonly ifAvailable: boolean },
    run: (lock: unknown) => Promise<void> | undefined,
  ): Promise<unknown>;
}

const STORE = "kept";
/** Attempts to claim a name: a page that is reloaded lets its names go a moment after the next one has begun. */
const CLAIM_TRIES = 4;
const CLAIM_PAUSE_MS = 100;

const settled = <T>(request: Request<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/**
 * Opens a storage in the page's IndexedDB, which keeps what a client needs to go on after a reload.
 *
 * @param name the name of the database; one for all pages of an origin.
 * @throws ClientError `storage_unavailable` where the page has none, or no locks: they need https, or localhost.
 */
export async function indexedDbStorage(name = "sojourn"): Promise<ClientStorage> {
  const { indexedDB, navigator } = platform;
  const locks = navigator?.locks;
  if (indexedDB === undefined || locks === undefined) {
    throw new ClientError(
      "storage_unavailable",
      "can't keep anything in IndexedDB: it is for pages that came over https, or from this machine",
    );
  }
  const opening = indexedDB.open(name, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
  const database = await settled(opening);
  const from = (prefix: string) =>
    (globalThis as unknown as { IDBKeyRange: { bound(low: string, high: string): unknown } })
      .IDBKeyRange.bound(prefix, `${prefix}\uffff`);
  return {
    list: async (prefix) => {
      const store = database.transaction(STORE, "readonly").objectStore(STORE);
      const [keys, values] = await Promise.all([
        settled(store.getAllKeys(from(prefix))),
        settled(store.getAll(from(prefix))),
      ]);
      return keys.flatMap((key, at) => {
        const value = values[at];
        return value === undefined ? [] : [[key, value] as const];
      });
    },
    commit: (changes) => {
      const transaction = database.transaction(STORE, "readwrite", { durability: "strict" });
      const store = transaction.objectStore(STORE);
      for (const [key, bytes] of changes) bytes === null ? store.delete(key) : store.put(bytes, key);
      return new Promise((resolve, reject) => {
        transaction.oncomplete = () => resolve();
        transaction.onabort = () => reject(transaction.error);
      });
    },
    claim: (wanted, isPatient) => claimLock(locks, `${name} ${wanted}`, isPatient ? CLAIM_TRIES : 1),
    close: () => Promise.resolve(database.close()),
  };
}

async function claimLock(locks: Locks, name: string, tries: number): Promise<(() => void) | null> {
  for (let attempt = 0; attempt < tries; attempt++) {
    if (attempt > 0) await new Promise((resolve) => setTimeout(resolve, CLAIM_PAUSE_MS));
    const release = await new Promise<(() => void) | null>((resolve) => {
      locks.request(name, { ifAvailable: true }, (lock) => {
        if (lock === null) return void resolve(null);
        const held = Promise.withResolvers<void>();
        resolve(held.resolve);
        return held.promise;
      }).catch(() => resolve(null));
    });
    if (release !== null) return release;
  }
  return null;
}

// ── Storage of a program ──

/** Bytes beyond which a file is written anew, where it also has much more than what is kept. */
const REWRITE_BYTES = 256 * 1024;

/**
 * Opens a storage in a file, which keeps what a client needs to go on after a restart of the program: a journal, one
 * line for each commit.
 *
 * @throws ClientError `storage_unavailable` where another program uses the file, the file or its folder can't be used,
 *     or this is no program of Deno.
 */
export async function fileStorage(path: string): Promise<ClientStorage> {
  const { Deno } = platform;
  if (Deno === undefined) {
    throw new ClientError("storage_unavailable", `can't keep anything in ${path}: a page has no files`);
  }
  const open = () => Deno.open(path, { read: true, write: true, create: true });
  let file = await open();
  if (!await file.tryLock(true)) {
    file.close();
    throw new ClientError("storage_unavailable", `can't use ${path}: another program does`);
  }
  const kept = new Map<string, Uint8Array>();
  const write = async (changes: readonly StorageChange[]) => {
    const line = lineOf(changes);
    for (let at = 0; at < line.length;) at += await file.write(line.subarray(at));
    await file.syncData();
    return line.length;
  };
  let bytes = await readJournal(file, kept).catch((cause) => {
    file.close();
    throw new ClientError("storage_unavailable", `can't read ${path}: it is no file of this library's`, {
      cause,
    });
  });
  // A file that was just made has to be found again after a power cut.
  await syncFolder(Deno, folderOf(path)).catch((cause) => {
    file.close();
    throw new ClientError("storage_unavailable", `can't keep anything in ${path}: its folder takes no sync`, {
      cause,
    });
  });
  const memory = new MemoryClientStorage();
  let last: Promise<unknown> = Promise.resolve();
  const rewrite = async () => {
    // The lock is taken on the new file before it has the name: no other program comes between.
    const line = lineOf([...kept]);
    const next = await replaceFile(Deno, path, line, { isLocked: true });
    bytes = line.length;
    file.close();
    file = next;
  };
  return {
    list: (prefix) => new MemoryClientStorage(kept).list(prefix),
    commit: (changes) => {
      const done = last.then(async () => {
        bytes += await write(changes);
        for (const [name, value] of changes) value === null ? kept.delete(name) : kept.set(name, value);
        if (bytes <= REWRITE_BYTES) return;
        const size = [...kept.values()].reduce((sum, value) => sum + value.length, 0);
        if (bytes > 4 * size) await rewrite();
      });
      last = done.catch(() => {});
      return done;
    },
    claim: (name) => memory.claim(name),
    close: async () => {
      await last;
      file.close();
    },
  };
}

/** Returns changes as a line of the journal. */
function lineOf(changes: readonly StorageChange[]): Uint8Array {
  const line = changes.map(([name, bytes]) => [name, bytes?.toBase64() ?? null]);
  return new TextEncoder().encode(`${JSON.stringify(line)}\n`);
}

/** Reads the journal, and leaves the file at its end: a line that was torn off is not taken. */
async function readJournal(file: Deno.FsFile, kept: Map<string, Uint8Array>): Promise<number> {
  const { size } = await file.stat();
  const all = new Uint8Array(size);
  for (let at = 0; at < size;) at += await file.read(all.subarray(at)) ?? size;
  const end = all.lastIndexOf(0x0a) + 1;
  for (const line of new TextDecoder().decode(all.subarray(0, end)).split("\n")) {
    if (line === "") continue;
    for (const [name, value] of JSON.parse(line) as [string, string | null][]) {
      if (value === null) kept.delete(name);
      else kept.set(name, Uint8Array.fromBase64(value));
    }
  }
  await file.truncate(end);
  await file.seek(end, 0);
  return end;
}
