/**
 * Cycles in a graph, by Tarjan's strongly connected components.
 */

/** Each group of nodes that reach one another, in the order found; nodes alone are none, unless they name themselves. */
export function cycles(graph: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const found: string[][] = [];
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const visit = (node: string): number => {
    const mine = index.size;
    index.set(node, mine);
    let lowest = mine;
    stack.push(node);
    for (const next of graph.get(node) ?? []) {
      if (!index.has(next)) lowest = Math.min(lowest, visit(next));
      else if (stack.includes(next)) lowest = Math.min(lowest, index.get(next) ?? mine);
    }
    low.set(node, lowest);
    if (lowest === mine) {
      const group = stack.splice(stack.indexOf(node));
      if (group.length > 1 || graph.get(node)?.has(node) === true) found.push(group.sort());
    }
    return lowest;
  };
  for (const node of graph.keys()) if (!index.has(node)) visit(node);
  return found;
}
