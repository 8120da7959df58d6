/** A lock: holders run one after the other, in the order in which they asked. */
export class Lock {
  #tail: Promise<unknown> = Promise.resolve();

  run<T>(body: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(body);
    this.#tail = result.catch(() => {});
    return result;
  }
}
