/**
 * The tree of ranges of keys that may overlap, each with a value: a search tree by their starts and ends that is
 * balanced by chance (a treap), in which each node knows how far the ranges below it reach.
 *
 * RT1  To add a range, to remove one and to find those that hold a key costs the logarithm of how many there are, and
 *      as much as is found, however the ranges nest: an app may watch any.
 * RT2  Values that are found come in the order in which they were added.
 */
import type { Key } from "./key.ts";
import type { Range } from "./range.ts";

interface Node<V> extends Range {
  readonly value: V;
  readonly number: number;
  readonly weight: number;
  left: Node<V> | null;
  right: Node<V> | null;
  /** Highest end of a range here or below. */
  reach: Key;
}

/** Tree of ranges that may overlap. */
export class RangeTree<V> {
  #root: Node<V> | null = null;
  #added = 0;

  get isEmpty(): boolean {
    return this.#root === null;
  }

  /** Returns the value of exactly that range. */
  get(range: Range): V | undefined {
    for (let node = this.#root; node !== null;) {
      const order = compare(range, node);
      if (order === 0) return node.value;
      node = order < 0 ? node.left : node.right;
    }
    return undefined;
  }

  /** Adds a range that is not in the tree. */
  add({ start, end }: Range, value: V): void {
    const number = this.#added++;
    const leaf = { start, end, value, number, weight: weightOf(number), left: null, right: null, reach: end };
    this.#root = added(this.#root, leaf);
  }

  remove(range: Range): void {
    this.#root = removed(this.#root, range);
  }

  /** Returns the values of the ranges that hold a key. */
  at(key: Key): readonly V[] {
    return this.#root === null ? NONE : valuesOf(found(this.#root, (start) => start <= key, key, []));
  }

  /** Returns the values of the ranges that share a key with a range. */
  overlapping({ start, end }: Range): readonly V[] {
    if (this.#root === null || start >= end) return NONE;
    return valuesOf(found(this.#root, (other) => other < end, start, []));
  }

  /** Returns all ranges. */
  ranges(): Range[] {
    return nodesOf(this.#root, []).map(({ start, end }) => ({ start, end }));
  }
}

const NONE: readonly never[] = [];

const compare = (a: Range, b: Range): number =>
  a.start < b.start ? -1 : a.start > b.start ? 1 : a.end < b.end ? -1 : a.end > b.end ? 1 : 0;

/** Returns the weight of a node: as good as drawn, and the same in each run. */
const weightOf = (number: number): number =>
  Math.imul(number + 1, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca6b) >>> 13;

function settled<V>(node: Node<V>): Node<V> {
  node.reach = node.end;
  if (node.left !== null && node.left.reach > node.reach) node.reach = node.left.reach;
  if (node.right !== null && node.right.reach > node.reach) node.reach = node.right.reach;
  return node;
}

function added<V>(node: Node<V> | null, leaf: Node<V>): Node<V> {
  if (node === null) return leaf;
  if (compare(leaf, node) < 0) {
    node.left = added(node.left, leaf);
    return node.left.weight > node.weight ? turnedRight(node, node.left) : settled(node);
  }
  node.right = added(node.right, leaf);
  return node.right.weight > node.weight ? turnedLeft(node, node.right) : settled(node);
}

function removed<V>(node: Node<V> | null, range: Range): Node<V> | null {
  if (node === null) return null;
  const order = compare(range, node);
  if (order === 0) return joined(node.left, node.right);
  if (order < 0) node.left = removed(node.left, range);
  else node.right = removed(node.right, range);
  return settled(node);
}

/** Joins two subtrees of which all of one lies before all of the other. */
function joined<V>(left: Node<V> | null, right: Node<V> | null): Node<V> | null {
  if (left === null) return right;
  if (right === null) return left;
  if (left.weight > right.weight) {
    left.right = joined(left.right, right);
    return settled(left);
  }
  right.left = joined(left, right.left);
  return settled(right);
}

function turnedRight<V>(node: Node<V>, left: Node<V>): Node<V> {
  node.left = left.right;
  left.right = settled(node);
  return settled(left);
}

function turnedLeft<V>(node: Node<V>, right: Node<V>): Node<V> {
  node.right = right.left;
  right.left = settled(node);
  return settled(right);
}

/** Collects nodes that end beyond `from` and whose starts are low enough; where a start is, so are those before it. */
function found<V>(node: Node<V>, isLow: (start: Key) => boolean, from: Key, into: Node<V>[]): Node<V>[] {
  if (node.left !== null && node.left.reach > from) found(node.left, isLow, from, into);
  if (!isLow(node.start)) return into;
  if (node.end > from) into.push(node);
  if (node.right !== null && node.right.reach > from) found(node.right, isLow, from, into);
  return into;
}

function nodesOf<V>(node: Node<V> | null, into: Node<V>[]): Node<V>[] {
  if (node === null) return into;
  nodesOf(node.left, into);
  into.push(node);
  return nodesOf(node.right, into);
}

const valuesOf = <V>(nodes: Node<V>[]): V[] =>
  (nodes.length > 1 ? nodes.sort((a, b) => a.number - b.number) : nodes).map(({ value }) => value);
