/**
 * The court of a game of pong, as pure functions: ball, paddles, points. No clock and no randomness of its own.
 *
 * P1  Points only grow; one is made when the ball is past a paddle, and by one of the two.
 * P2  `steps` counts what the court went through, also while the ball waits. Nothing else makes time here.
 * P3  A paddle moves towards where it is wanted, at most `PADDLE_SPEED`; it never leaves the court.
 */

/** The two ends. */
export type Side = 0 | 1;

/** Width and height of the court, in its own units. */
export const COURT = { width: 160, height: 100 } as const;
export const BALL_RADIUS = 1.6;
/** Half of a paddle's length, and how far its face is from the wall behind it. */
export const PADDLE = { half: 9, face: 8 } as const;
/** Of these a second has `STEPS_PER_S`: the fastest ball goes 2 units in one, less than its own width. */
export const STEPS_PER_S = 120;
/** Units a second. */
const PADDLE_SPEED = 130;
const SERVE_SPEED = 75;
const FASTEST = 240;
/** A ball is this much faster after each paddle. */
const FASTER = 1.06;
/** Where the ball meets the edge of a paddle, it leaves at 55 degrees. */
const STEEPEST = (55 * Math.PI) / 180;
/** The ball waits so long before it is served, and after an interruption. */
export const HOLD_STEPS = 0.9 * STEPS_PER_S;
export const POINTS_TO_WIN = 11;

/** Everything that is on a court. */
export interface Court {
  readonly steps: number;
  readonly ball: { readonly x: number; readonly y: number; readonly vx: number; readonly vy: number };
  /** Middles of the two paddles, and where their players want them. */
  readonly paddles: readonly [number, number];
  readonly wanted: readonly [number, number];
  readonly points: readonly [number, number];
  /** How often the ball was returned since it was served. */
  readonly rally: number;
  readonly longest: number;
  /** Steps until the ball moves. */
  readonly hold: number;
  readonly winner: Side | null;
}

/** A number of [0, 1). */
export type Draw = () => number;

const clamp = (value: number, least: number, most: number) => Math.min(most, Math.max(least, value));
const inReach = (y: number) => clamp(y, PADDLE.half, COURT.height - PADDLE.half);

/** Served from the middle towards one side, at up to 30 degrees. */
function served(to: Side, draw: Draw): Court["ball"] {
  const angle = (draw() - 0.5) * (Math.PI / 3);
  const towards = to === 0 ? -1 : 1;
  return {
    x: COURT.width / 2,
    y: COURT.height / 2,
    vx: towards * SERVE_SPEED * Math.cos(angle),
    vy: SERVE_SPEED * Math.sin(angle),
  };
}

/** A court before its first serve. */
export function newCourt(draw: Draw): Court {
  const middle = COURT.height / 2;
  return {
    ...{ steps: 0, points: [0, 0], rally: 0, longest: 0, hold: HOLD_STEPS, winner: null },
    ...{ paddles: [middle, middle], wanted: [middle, middle] },
    ball: served(draw() < 0.5 ? 0 : 1, draw),
  };
}

/** Where a player wants the paddle. What is no place on the court is the nearest that is one. */
export function aim(court: Court, side: Side, y: number): Court {
  const [left, right] = court.wanted;
  return { ...court, wanted: side === 0 ? [inReach(y), right] : [left, inReach(y)] };
}

/** The ball waits, as before a serve: somebody was away. */
export const held = (court: Court): Court => ({ ...court, hold: HOLD_STEPS });

const moved = (from: number, to: number): number => {
  const most = PADDLE_SPEED / STEPS_PER_S;
  return from + clamp(to - from, -most, most);
};

/** The court one step later. */
export function step(court: Court, draw: Draw): Court {
  const paddles = [
    moved(court.paddles[0], court.wanted[0]),
    moved(court.paddles[1], court.wanted[1]),
  ] as const;
  const next = { ...court, steps: court.steps + 1, paddles };
  if (court.winner !== null) return next;
  if (court.hold > 0) return { ...next, hold: court.hold - 1 };
  return played(next, draw);
}

function played(court: Court, draw: Draw): Court {
  const { vx, vy } = court.ball;
  const x = court.ball.x + vx / STEPS_PER_S;
  const bounced = offWalls(court.ball.y + vy / STEPS_PER_S, vy);
  const side: Side = vx < 0 ? 0 : 1;
  const face = side === 0 ? PADDLE.face + BALL_RADIUS : COURT.width - PADDLE.face - BALL_RADIUS;
  const isPast = side === 0 ? x <= face : x >= face;
  const wasBefore = side === 0 ? court.ball.x > face : court.ball.x < face;
  const off = bounced.y - court.paddles[side];
  if (isPast && wasBefore && Math.abs(off) <= PADDLE.half + BALL_RADIUS) {
    const rally = court.rally + 1;
    return {
      ...court,
      rally,
      longest: Math.max(rally, court.longest),
      ball: returned(court, side, face, off),
    };
  }
  if (x < -BALL_RADIUS || x > COURT.width + BALL_RADIUS) return scored(court, side === 0 ? 1 : 0, draw);
  return { ...court, ball: { x, vx, ...bounced } };
}

/** Mirrored at the walls. */
function offWalls(y: number, vy: number): { y: number; vy: number } {
  const least = BALL_RADIUS, most = COURT.height - BALL_RADIUS;
  if (y < least) return { y: 2 * least - y, vy: -vy };
  if (y > most) return { y: 2 * most - y, vy: -vy };
  return { y, vy };
}

/** Sent back by a paddle: the further from its middle, the steeper. */
function returned(court: Court, side: Side, face: number, off: number): Court["ball"] {
  const { x: _, y, vx, vy } = court.ball;
  const speed = Math.min(FASTEST, Math.hypot(vx, vy) * FASTER);
  const angle = clamp(off / PADDLE.half, -1, 1) * STEEPEST;
  const away = side === 0 ? 1 : -1;
  return { x: face, y, vx: away * speed * Math.cos(angle), vy: speed * Math.sin(angle) };
}

/** P1. Who lost the point is served to. */
function scored(court: Court, by: Side, draw: Draw): Court {
  const [left, right] = court.points;
  const points = by === 0 ? [left + 1, right] as const : [left, right + 1] as const;
  return {
    ...court,
    points,
    rally: 0,
    hold: HOLD_STEPS,
    ball: served(by === 0 ? 1 : 0, draw),
    winner: points[by] >= POINTS_TO_WIN ? by : null,
  };
}
