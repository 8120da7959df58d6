/**
 * How much has come of messages that are not whole yet. Deno collects a WebSocket message of up to 64 MiB, twice, before it
 * shows any of it, and takes no smaller limit; but the kernel counts what each connection has received, and can be asked
 * (`TCP_INFO` of tcp(7)), and so how much of that nobody has read yet.
 *
 * Life: `watch`, when a WebSocket is taken → its descriptor is found, by the address of its peer → it is looked at in each
 * round → `end`. Rounds go over all descriptors of the process, LOOKED_EACH of them every LOOK_MS: a round of a site with a
 * few hundred takes one such time, with ten thousand ten seconds.
 *
 * KR1  What has come is counted from the last look before which a message was whole: no message begins before the one
 *      ahead of it ends. So it is too little by what comes between two looks, and never too much but for KR2.
 * KR2  CONTROL_BYTES_PER_S of what comes are not counted: pings and pongs stand between messages, too.
 * KR3  A descriptor may be another connection's by now: before anybody is told, its peer is asked for again.
 * KR4  Where the system can't tell (it is no Linux, or the process may call no foreign code) nobody is told anything.
 */
import { clearInterval, setInterval } from "node:timers";

const LOOK_MS = 250;
/** Two calls of the system each, in which nothing else is done: about a millisecond. */
const LOOKED_EACH = 256;
/** Three pings of the longest kind. Whoever sends a message this slowly takes a day and a half for 64 MiB. */
const CONTROL_BYTES_PER_S = 512;
/** Several that come together. */
const CONTROL_BYTES_MAX = 4_096;

/** Of linux/tcp.h and linux/sockios.h, the same on all processors that Deno runs on. */
const IPPROTO_TCP = 6, TCP_INFO = 11, FIONREAD = 0x541b;
const BYTES_RECEIVED_AT = 128;
const AF_INET = 2, AF_INET6 = 10;

const CALLS = {
  getsockopt: { parameters: ["i32", "i32", "i32", "buffer", "buffer"], result: "i32" },
  getpeername: { parameters: ["i32", "buffer", "buffer"], result: "i32" },
  ioctl: { parameters: ["i32", "usize", "buffer"], result: "i32" },
} as const;

/** One connection that is watched. */
export class ReceivedWatch {
  readonly host: string;
  readonly port: number;
  readonly tell: (bytes: number) => void;
  readonly #end: (watch: ReceivedWatch) => void;
  descriptor: number | null = null;
  /** A message was whole since the last look. */
  isWhole = true;
  /** Read of the connection at the last look; null: it was not found yet. */
  read: number | null = null;
  /** Of that, what is no part of a message that is not whole. */
  done = 0;
  /** KR2 */
  controlBytes = 0;
  lookedMs = 0;
  /** What was told last. */
  told = 0;

  constructor(peer: Deno.NetAddr, tell: (bytes: number) => void, end: (watch: ReceivedWatch) => void) {
    this.host = hostOf(peer.hostname);
    this.port = peer.port;
    this.tell = tell;
    this.#end = end;
  }

  /** A message has come, whole. */
  whole(): void {
    this.isWhole = true;
  }

  /** The connection is closed, or what comes matters to nobody any more. */
  end(): void {
    this.#end(this);
  }
}

/** Connections of this process. */
class Received {
  readonly #sought = new Set<ReceivedWatch>();
  /** By descriptor. */
  readonly #found = new Map<number, ReceivedWatch>();
  readonly #kernel = new Kernel();
  #timer: ReturnType<typeof setInterval> | undefined;
  #next = 0;
  #slots = 0;

  watch(peer: Deno.NetAddr, tell: (bytes: number) => void): ReceivedWatch {
    const watch = new ReceivedWatch(peer, tell, this.#end);
    this.#sought.add(watch);
    this.#timer ??= setInterval(this.#look, LOOK_MS).unref();
    return watch;
  }

  #end = (watch: ReceivedWatch): void => {
    this.#sought.delete(watch);
    if (watch.descriptor !== null) this.#found.delete(watch.descriptor);
    watch.descriptor = null;
    if (this.#sought.size + this.#found.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#kernel.close();
  };

  #look = (): void => {
    if (!this.#kernel.canTell) return; // KR4
    const nowMs = performance.now();
    if (this.#next >= this.#slots) {
      this.#next = 0;
      this.#slots = descriptorSlots();
    }
    const until = Math.min(this.#slots, this.#next + LOOKED_EACH);
    while (this.#next < until) {
      const descriptor = this.#next++, watch = this.#found.get(descriptor);
      if (watch !== undefined) this.#count(descriptor, watch, nowMs);
      else if (this.#sought.size > 0) this.#find(descriptor, nowMs);
    }
  };

  #find(descriptor: number, nowMs: number): void {
    const port = this.#kernel.peerPort(descriptor);
    if (port === null) return;
    for (const watch of this.#sought) {
      if (watch.port !== port || watch.host !== this.#kernel.peerHost()) continue;
      this.#sought.delete(watch);
      this.#found.set(descriptor, watch);
      watch.descriptor = descriptor;
      watch.isWhole = true;
      return this.#count(descriptor, watch, nowMs);
    }
  }

  #count(descriptor: number, watch: ReceivedWatch, nowMs: number): void {
    const read = this.#kernel.read(descriptor);
    if (read === null || read < (watch.read ?? 0)) return this.#lose(descriptor, watch);
    const came = read - (watch.read ?? read), tookMs = nowMs - watch.lookedMs;
    watch.read = read;
    watch.lookedMs = nowMs;
    const mayBytes = Math.min(CONTROL_BYTES_MAX, watch.controlBytes + CONTROL_BYTES_PER_S * tookMs / 1_000);
    const control = Math.min(Math.floor(mayBytes), came);
    watch.controlBytes = mayBytes - control;
    watch.done = watch.isWhole ? read : watch.done + control; // KR1, KR2
    watch.isWhole = false;
    const bytes = read - watch.done;
    if (bytes === watch.told) return;
    if (bytes > watch.told && !this.#isStill(descriptor, watch)) return this.#lose(descriptor, watch); // KR3
    watch.told = bytes;
    watch.tell(bytes);
  }

  #isStill(descriptor: number, { host, port }: ReceivedWatch): boolean {
    return this.#kernel.peerPort(descriptor) === port && this.#kernel.peerHost() === host;
  }

  #lose(descriptor: number, watch: ReceivedWatch): void {
    this.#found.delete(descriptor);
    watch.descriptor = watch.read = null;
    this.#sought.add(watch);
  }
}

/** What the kernel says of a descriptor. */
class Kernel {
  #library: Deno.DynamicLibrary<typeof CALLS> | null | undefined;
  readonly #info = new DataView(new ArrayBuffer(256));
  readonly #peer = new DataView(new ArrayBuffer(128));
  readonly #length = new Uint32Array(1);
  readonly #unread = new Int32Array(1);

  get canTell(): boolean {
    return this.#open() !== null;
  }

  /** So much was read of a connection; null: it is none of TCP. */
  read(descriptor: number): number | null {
    const library = this.#open();
    this.#length[0] = this.#info.byteLength;
    if (
      library === null ||
      library.symbols.getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, this.#info.buffer, this.#length) !== 0 ||
      (this.#length[0] ?? 0) < BYTES_RECEIVED_AT + 8 ||
      library.symbols.ioctl(descriptor, BigInt(FIONREAD), this.#unread) !== 0
    ) return null;
    return Number(this.#info.getBigUint64(BYTES_RECEIVED_AT, isLittleEndian)) - (this.#unread[0] ?? 0);
  }

  /** Of the other end; null: it is none of IP. */
  peerPort(descriptor: number): number | null {
    const library = this.#open();
    this.#length[0] = this.#peer.byteLength;
    if (library === null || library.symbols.getpeername(descriptor, this.#peer.buffer, this.#length) !== 0) {
      return null;
    }
    const family = this.#peer.getUint16(0, isLittleEndian);
    return family === AF_INET || family === AF_INET6 ? this.#peer.getUint16(2) : null;
  }

  /** Of the one whose port was told last, as {@link hostOf} has it. */
  peerHost(): string {
    if (this.#peer.getUint16(0, isLittleEndian) === AF_INET) {
      return Array.from({ length: 4 }, (_, i) => this.#peer.getUint8(4 + i)).join(".");
    }
    return hostOf(
      Array.from({ length: 8 }, (_, i) => this.#peer.getUint16(8 + 2 * i).toString(16)).join(":"),
    );
  }

  close(): void {
    this.#library?.close();
    this.#library = undefined;
  }

  #open(): Deno.DynamicLibrary<typeof CALLS> | null {
    if (this.#library !== undefined) return this.#library;
    try {
      const may = Deno.build.os === "linux" &&
        Deno.permissions.querySync({ name: "ffi" }).state === "granted";
      return this.#library = may ? Deno.dlopen("libc.so.6", CALLS) : null;
    } catch {
      return this.#library = null;
    }
  }
}

const isLittleEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** One form of an address that has several. */
const hostOf = (hostname: string): string =>
  hostname.includes(":") ? new URL(`http://[${hostname}]`).hostname : hostname;

/** Descriptors are below this: the lowest that is free is taken. */
function descriptorSlots(): number {
  return Number(/^FDSize:\s+(\d+)/m.exec(Deno.readTextFileSync("/proc/self/status"))?.[1] ?? 0);
}

const received = new Received();

/** From now on `tell` hears how many bytes have come of a message that is not whole, each time that this has changed. */
export function watchReceived(peer: Deno.Addr, tell: (bytes: number) => void): ReceivedWatch | undefined {
  return peer.transport === "tcp" ? received.watch(peer, tell) : undefined;
}
