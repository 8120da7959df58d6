/**
 * The connections of this process as the kernel has them: the bytes that were read of each (`TCP_INFO` of tcp(7), less
 * those not read yet) and acknowledged by the other end, the time since something was sent, and the address of that
 * end. Deno tells none of this, and no descriptor.
 *
 * Life of a watch: `watch` → its descriptor is found, by the address of its peer → `looked` in each round → `end`.
 * Every LOOK_MS, LOOKED_EACH of the found connections are looked at, and those not found yet are sought among
 * LOOKED_EACH descriptors of the process: a round over a thousand connections takes one LOOK_MS, over ten thousand half
 * a second. And `connectionsAt` goes over all connections of a port, once, at the same pace.
 *
 * DS1  A descriptor may be another connection's by now: code that acts on what was read asks
 *      {@link Descriptors.isStill} first, and a watch never keeps a descriptor that is another connection's from the
 *      watch of that one.
 * DS2  Where the system can't tell (it is no Linux, or the process may call no foreign code) nothing is ever looked at.
 */
import { strict as assert } from "node:assert";
import { clearInterval, setInterval } from "node:timers";

const LOOK_MS = 50;
/** Descriptors of one look, at two system calls each, in which nothing else is done: a millisecond. */
const LOOKED_EACH = 1_024;

/** Constants of linux/tcp.h, linux/sockios.h and sys/socket.h, the same on all processors that Deno runs on. */
const IPPROTO_TCP = 6, TCP_INFO = 11, FIONREAD = 0x541b, SHUT_RDWR = 2;
const LAST_DATA_SENT_AT = 44, LAST_DATA_RECV_AT = 52, BYTES_ACKED_AT = 120, BYTES_RECEIVED_AT = 128;
const AF_INET = 2, AF_INET6 = 10;

const CALLS = {
  getsockopt: { parameters: ["i32", "i32", "i32", "buffer", "buffer"], result: "i32" },
  getpeername: { parameters: ["i32", "buffer", "buffer"], result: "i32" },
  getsockname: { parameters: ["i32", "buffer", "buffer"], result: "i32" },
  ioctl: { parameters: ["i32", "usize", "buffer"], result: "i32" },
  shutdown: { parameters: ["i32", "i32"], result: "i32" },
} as const;

/** Watch of one connection. */
export abstract class ConnectionWatch {
  readonly host: string;
  readonly port: number;
  /** Port at this end; null where any is meant: one peer may have connections to several, from one port. */
  readonly localPort: number | null;
  /** Descriptor of the connection; null while it is not found. */
  descriptor: number | null = null;

  constructor(peer: Deno.NetAddr, localPort: number | null = null) {
    this.host = hostOf(peer.hostname);
    this.port = peer.port;
    this.localPort = localPort;
  }

  /**
   * Called in each round, with the bytes that were read of the connection since it was opened, and those acknowledged
   * by its peer.
   */
  abstract looked(read: number, nowMs: number, sent: number): void;

  /** Called when the connection's descriptor is found, for the first time or again. */
  found(): void {}

  /** Called when the descriptor turns out to be another connection's. */
  lost(): void {}
}

/** A connection met by going over all of them; it is to be looked at before anything is awaited (DS1). */
export interface MetConnection {
  readonly peer: { readonly hostname: string; readonly port: number };
  /** Milliseconds since anything was sent to it, or since it was opened. */
  readonly sentAgoMs: number;
  /** Milliseconds since anything was received of it, or since it was opened. */
  readonly receivedAgoMs: number;
  cut(): void;
}

/** The connections of this process. */
export class Descriptors {
  /** Watches whose descriptor is not found yet, by their peer's port. */
  readonly #sought = new Map<number, Set<ConnectionWatch>>();
  readonly #found = new Map<number, ConnectionWatch>();
  readonly #kernel = new Kernel();
  /** Number of users of the kernel's calls: the library is closed when there are none. */
  #users = 0;
  #timer: ReturnType<typeof setInterval> | undefined;
  /** Iterator over the watches that are found. */
  #round = this.#found.entries();
  /** Descriptor at which seeking goes on. */
  #next = 0;
  #slots = 0;

  watch(watch: ConnectionWatch): void {
    this.#users++;
    this.#seek(watch);
    this.#timer ??= setInterval(this.#look, LOOK_MS).unref();
  }

  /** Ends a watch: its connection is closed, or what comes matters to nobody any more. */
  end(watch: ConnectionWatch): void {
    const sought = this.#sought.get(watch.port);
    if (watch.descriptor !== null) this.#found.delete(watch.descriptor);
    else if (sought?.delete(watch) !== true) return;
    else if (sought.size === 0) this.#sought.delete(watch.port);
    watch.descriptor = null;
    if (this.#sought.size === 0 && this.#found.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    this.#leave();
  }

  /** Keeps the kernel's library open until the returned function is called: to open it takes a millisecond. */
  keep(): () => void {
    this.#users++;
    return () => this.#leave();
  }

  #leave(): void {
    assert.ok(this.#users > 0, "left more often than used");
    if (--this.#users === 0) this.#kernel.close();
  }

  /**
   * Goes once over all connections that came in at a port, LOOKED_EACH descriptors every LOOK_MS; over none where the
   * system can't tell (DS2). To be called only while the library is kept open ({@link keep}).
   */
  async *connectionsAt(localPort: number): AsyncGenerator<MetConnection, void, void> {
    const slots = this.#kernel.canTell ? descriptorSlots(0) : 0;
    for (let descriptor = 0; descriptor < slots; descriptor++) {
      if (descriptor % LOOKED_EACH === LOOKED_EACH - 1) {
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      }
      const port = this.#kernel.peerPort(descriptor);
      if (port === null) continue;
      const hostname = this.#kernel.peerHost(); // before the buffer has another address
      const told = this.#kernel.localPort(descriptor) === localPort ? this.#kernel.tell(descriptor) : null;
      if (told === null) continue;
      yield { ...told, peer: { hostname, port }, cut: () => this.#kernel.cut(descriptor) };
    }
  }

  /** Reports whether a watch's descriptor still is its connection's (DS1). */
  isStill({ descriptor, host, port, localPort }: ConnectionWatch): boolean {
    return descriptor !== null && this.#kernel.peerPort(descriptor) === port &&
      this.#kernel.peerHost() === host && this.#isAt(descriptor, localPort);
  }

  #isAt(descriptor: number, localPort: number | null): boolean {
    return localPort === null || this.#kernel.localPort(descriptor) === localPort;
  }

  /** Shuts a connection down: nothing comes of it any more, and nothing goes. Its reader finds its end. */
  cut(watch: ConnectionWatch): void {
    if (watch.descriptor !== null) this.#kernel.cut(watch.descriptor);
  }

  /** Seeks a watch's connection anew: its descriptor is another one's. */
  lose(watch: ConnectionWatch): void {
    if (watch.descriptor === null) return;
    this.#found.delete(watch.descriptor);
    watch.descriptor = null;
    this.#seek(watch);
    watch.lost();
  }

  #seek(watch: ConnectionWatch): void {
    let sought = this.#sought.get(watch.port);
    if (sought === undefined) this.#sought.set(watch.port, sought = new Set());
    sought.add(watch);
  }

  #look = (): void => {
    if (!this.#kernel.canTell) return; // DS2
    if (this.#sought.size > 0) this.#seekOn();
    const nowMs = performance.now();
    for (let looked = 0; looked < LOOKED_EACH; looked++) {
      const next = this.#round.next();
      if (next.done === true) {
        this.#round = this.#found.entries();
        return;
      }
      const [descriptor, watch] = next.value, told = this.#kernel.tell(descriptor);
      if (told === null) this.lose(watch);
      else watch.looked(told.read, nowMs, told.sent);
    }
  };

  /** Seeks the connections that are not found yet among the next descriptors. */
  #seekOn(): void {
    if (this.#next >= this.#slots) {
      this.#next = 0;
      this.#slots = descriptorSlots(this.#slots);
    }
    const until = Math.min(this.#slots, this.#next + LOOKED_EACH);
    for (; this.#next < until && this.#sought.size > 0; this.#next++) {
      const watch = this.#found.get(this.#next);
      if (watch !== undefined && this.isStill(watch)) continue;
      if (watch !== undefined) this.lose(watch); // DS1
      this.#find(this.#next);
    }
  }

  #find(descriptor: number): void {
    const port = this.#kernel.peerPort(descriptor),
      sought = port === null ? undefined : this.#sought.get(port);
    const host = sought === undefined ? "" : this.#kernel.peerHost(); // before the buffer has another address
    for (const watch of sought ?? []) {
      if (watch.host !== host || !this.#isAt(descriptor, watch.localPort)) continue;
      sought?.delete(watch);
      if (sought?.size === 0) this.#sought.delete(watch.port);
      this.#found.set(descriptor, watch);
      watch.descriptor = descriptor;
      watch.found();
      return;
    }
  }
}

/** State of a connection, as the kernel tells it. */
interface Told {
  /** Bytes that were read of the connection. */
  readonly read: number;
  /** Bytes that its other end has acknowledged. */
  readonly sent: number;
  readonly sentAgoMs: number;
  readonly receivedAgoMs: number;
}

/** The kernel's answers about a descriptor. */
class Kernel {
  #library: Deno.DynamicLibrary<typeof CALLS> | null | undefined;
  readonly #info = new DataView(new ArrayBuffer(256));
  readonly #peer = new DataView(new ArrayBuffer(128));
  readonly #length = new Uint32Array(1);
  readonly #unread = new Int32Array(1);

  get canTell(): boolean {
    return this.#open() !== null;
  }

  /** Returns the state of a connection; null: the descriptor is no TCP connection. */
  tell(descriptor: number): Told | null {
    const library = this.#open();
    this.#length[0] = this.#info.byteLength;
    if (
      library === null ||
      library.symbols.getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, this.#info.buffer, this.#length) !== 0 ||
      (this.#length[0] ?? 0) < BYTES_RECEIVED_AT + 8 ||
      library.symbols.ioctl(descriptor, BigInt(FIONREAD), this.#unread) !== 0
    ) return null;
    const count = (at: number) => Number(this.#info.getBigUint64(at, isLittleEndian));
    return {
      read: count(BYTES_RECEIVED_AT) - (this.#unread[0] ?? 0),
      sent: count(BYTES_ACKED_AT),
      sentAgoMs: this.#info.getUint32(LAST_DATA_SENT_AT, isLittleEndian),
      receivedAgoMs: this.#info.getUint32(LAST_DATA_RECV_AT, isLittleEndian),
    };
  }

  /** Returns the port of the other end; null: the descriptor is no IP connection. */
  peerPort(descriptor: number): number | null {
    return this.#port(descriptor, "getpeername");
  }

  /** Returns the port of this end. */
  localPort(descriptor: number): number | null {
    return this.#port(descriptor, "getsockname");
  }

  #port(descriptor: number, end: "getpeername" | "getsockname"): number | null {
    const library = this.#open();
    this.#length[0] = this.#peer.byteLength;
    if (library === null || library.symbols[end](descriptor, this.#peer.buffer, this.#length) !== 0) {
      return null;
    }
    const family = this.#peer.getUint16(0, isLittleEndian);
    return family === AF_INET || family === AF_INET6 ? this.#peer.getUint16(2) : null;
  }

  /** Returns the host of the end whose port was told last, as {@link hostOf} writes it. */
  peerHost(): string {
    if (this.#peer.getUint16(0, isLittleEndian) === AF_INET) {
      return Array.from({ length: 4 }, (_, i) => this.#peer.getUint8(4 + i)).join(".");
    }
    return hostOf(
      Array.from({ length: 8 }, (_, i) => this.#peer.getUint16(8 + 2 * i).toString(16)).join(":"),
    );
  }

  cut(descriptor: number): void {
    this.#open()?.symbols.shutdown(descriptor, SHUT_RDWR);
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

/** Returns a host in one form, as addresses have several. */
const hostOf = (hostname: string): string =>
  hostname.includes(":") ? new URL(`http://[${hostname}]`).hostname : hostname;

/**
 * Returns a bound of this process's descriptors, as the lowest free one is always taken; `known` where no descriptor is
 * free to ask by, or the file may not be read.
 */
function descriptorSlots(known: number): number {
  try {
    return Number(/^FDSize:\s+(\d+)/m.exec(Deno.readTextFileSync("/proc/self/status"))?.[1] ?? known);
  } catch {
    return known;
  }
}

/** The connections of this process. */
export const descriptors: Descriptors = new Descriptors();
