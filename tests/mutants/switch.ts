/** Which mutant is in force, in a process whose files hold many (switched.ts): its number, or 0 for none. */
export let active = 0;

/** Puts a mutant in force, or none. */
export function activate(number: number): void {
  active = number;
}
