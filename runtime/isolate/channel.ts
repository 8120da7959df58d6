/**
 * Reads the frames that an isolate sends about one stateful session, and hands them to the sink of whoever opened it.
 */
import type { ChannelSink } from "../../functions/sessions/serve/ports.ts";
import { readEnd, readLogLine, readNumber } from "./frame_fields.ts";
import type { Payload } from "./frame_reader.ts";
import { ISOLATE_FRAME } from "./frames.ts";
import { readCall, readCheckpoint, readOpened, readParked, readSessionCommit } from "./session_frames.ts";

/**
 * Reads a frame on a session's channel; those that mean nothing there are ignored.
 *
 * @param state takes the segments that have come before (state_frames.ts).
 * @param kept is told the bytes of a frame that the sink does not let go of before the promise resolves.
 * @throws FrameError
 */
export function receiveChannel(
  sink: ChannelSink,
  type: number,
  payload: Payload,
  state: () => readonly Uint8Array[],
  kept: (bytes: number, until: Promise<void>) => void,
): void {
  const bytes = payload.left;
  switch (type) {
    case ISOLATE_FRAME.sessionOpened:
      return sink.opened(whole(payload, readOpened));
    case ISOLATE_FRAME.sessionCommit:
      return waits(sink.commit(whole(payload, readSessionCommit)), bytes, kept);
    case ISOLATE_FRAME.sessionCall:
      return sink.call(whole(payload, readCall));
    case ISOLATE_FRAME.sessionDropped:
      return sink.dropped(whole(payload, readNumber));
    case ISOLATE_FRAME.sessionCheckpoint: {
      const segments = state();
      const all = segments.reduce((sum, { length }) => sum + length, bytes);
      return waits(sink.checkpointed(readCheckpoint(payload, segments)), all, kept);
    }
    case ISOLATE_FRAME.sessionParked:
      return sink.parked(whole(payload, readParked));
    case ISOLATE_FRAME.log:
      return log(sink, whole(payload, readLogLine));
  }
}

function waits(
  until: Promise<void> | void,
  bytes: number,
  kept: (bytes: number, until: Promise<void>) => void,
): void {
  if (until !== undefined) kept(bytes, until);
}

const log = (sink: ChannelSink, { level, text }: ReturnType<typeof readLogLine>): void =>
  sink.log(level, text);

function whole<T>(payload: Payload, read: (payload: Payload) => T): T {
  const value = read(payload);
  readEnd(payload);
  return value;
}
