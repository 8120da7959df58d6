/** What an isolate says of one stateful session, handed to whoever opened it. */
import type { Call, Checkpoint, Commit, OpenedProgram, Parked } from "../../functions/sessions/turn/mod.ts";
import { readEnd, readLogLine, readNumber } from "./frame_fields.ts";
import type { Payload } from "./frame_reader.ts";
import { ISOLATE_FRAME } from "./frames.ts";
import { readCall, readCheckpoint, readOpened, readParked, readSessionCommit } from "./session_frames.ts";

/** How an isolate of stateful sessions ended. */
export interface StatefulEnd {
  /** Nobody needed it any more. */
  readonly isPlanned: boolean;
  readonly why: string;
  /** The channel whose turn ran last; 0: none. */
  readonly channel: number;
  /** The number of the newest event of that channel that had come to the isolate when that turn began; 0: none. */
  readonly received: number;
}

/** The site's end of one stateful session that is open in an isolate. */
export interface ChannelSink {
  opened(opened: OpenedProgram): void;
  commit(commit: Commit): void;
  /** A call without an effect. */
  call(call: Call): void;
  /** Nobody waits for that call any more. */
  dropped(call: number): void;
  checkpointed(checkpoint: Checkpoint): void;
  parked(parked: Parked): void;
  log(level: string, text: string): void;
  /** The isolate is gone; `isCause`: it was this session's turn. */
  ended(end: StatefulEnd, isCause: boolean): void;
}

/**
 * Reads a frame on a session's channel; those that mean nothing there are ignored.
 *
 * @param state takes the segments that have come before (state_frames.ts).
 * @throws FrameError
 */
export function receiveChannel(
  sink: ChannelSink,
  type: number,
  payload: Payload,
  state: () => readonly Uint8Array[],
): void {
  switch (type) {
    case ISOLATE_FRAME.sessionOpened:
      return sink.opened(whole(payload, readOpened));
    case ISOLATE_FRAME.sessionCommit:
      return sink.commit(whole(payload, readSessionCommit));
    case ISOLATE_FRAME.sessionCall:
      return sink.call(whole(payload, readCall));
    case ISOLATE_FRAME.sessionDropped:
      return sink.dropped(whole(payload, readNumber));
    case ISOLATE_FRAME.sessionCheckpoint:
      return sink.checkpointed(readCheckpoint(payload, state()));
    case ISOLATE_FRAME.sessionParked:
      return sink.parked(whole(payload, readParked));
    case ISOLATE_FRAME.log:
      return log(sink, whole(payload, readLogLine));
  }
}

const log = (sink: ChannelSink, { level, text }: ReturnType<typeof readLogLine>): void =>
  sink.log(level, text);

function whole<T>(payload: Payload, read: (payload: Payload) => T): T {
  const value = read(payload);
  readEnd(payload);
  return value;
}
