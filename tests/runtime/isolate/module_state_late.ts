/** A module that module_state_app.ts imports when it is used. */

export const born = Date.now();
export const drawn = Math.random();
let n = 0;
export const count = (): number => ++n;
