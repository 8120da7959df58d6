/** The sink of stateful sessions: what they give out, as frames to the site (session_frames.ts). */
import type {
  Call,
  Checkpoint,
  Commit,
  OpenedProgram,
  Parked,
  SessionSink,
} from "../../../functions/sessions/turn/mod.ts";
import type { FrameWriter } from "../frame_writer.ts";
import { ISOLATE_FRAME } from "../frames.ts";
import {
  writeCall,
  writeCheckpoint,
  writeOpened,
  writeParked,
  writeSessionCommit,
} from "../session_frames.ts";
import { StateSender } from "../state_frames.ts";
import { withAppFrames } from "./stack.ts";
import { BUNDLE_URL } from "./stateful_imports.ts";

/** Writes what sessions give out as frames. */
export class FrameSink implements SessionSink {
  readonly #writer: FrameWriter;
  readonly #states: StateSender;

  constructor(writer: FrameWriter) {
    this.#writer = writer;
    this.#states = new StateSender(writer);
  }

  /** Drops what is still to be sent of a session. */
  closed(channel: number): void {
    this.#states.drop(channel);
  }

  opened(channel: number, opened: OpenedProgram): void {
    writeOpened(this.#writer.begin(ISOLATE_FRAME.sessionOpened, channel), opened);
    this.#writer.end();
  }

  commit(channel: number, commit: Commit): void {
    writeSessionCommit(this.#writer.begin(ISOLATE_FRAME.sessionCommit, channel), commit);
    this.#writer.end();
  }

  call(channel: number, call: Call): void {
    writeCall(this.#writer.begin(ISOLATE_FRAME.sessionCall, channel), call);
    this.#writer.end();
  }

  dropped(channel: number, call: number): void {
    this.#writer.begin(ISOLATE_FRAME.sessionDropped, channel).f64(call).end();
  }

  checkpoint(channel: number, checkpoint: Checkpoint): void {
    this.#states.send(channel, checkpoint.state, () => {
      writeCheckpoint(this.#writer.begin(ISOLATE_FRAME.sessionCheckpoint, channel), checkpoint);
      this.#writer.end();
    });
  }

  parked(channel: number, parked: Parked): void {
    const told = JSON.parse(JSON.stringify(parked).replaceAll(BUNDLE_URL, "bundle")) as Parked;
    writeParked(this.#writer.begin(ISOLATE_FRAME.sessionParked, channel), told);
    this.#writer.end();
  }

  log(channel: number, level: string, text: string): void {
    this.#writer.begin(ISOLATE_FRAME.log, channel).text(level).text(withAppFrames(text)).end();
  }
}
