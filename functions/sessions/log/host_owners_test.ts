import assert from "node:assert/strict";
import {
  disksOf,
  hostOwner,
  HostOwners,
  HOSTS_MAX,
  hostsAreEnough,
  hostsOf,
  missing,
} from "./host_owners.ts";

const ONE = [{ site: "s1", disk: 1 }];
const TWO = [...ONE, { site: "s2", disk: 2 }];

/** A home with these hosts on record, each with a log up to an entry, opened with entries up to `floor`. */
function opened(disks: typeof ONE, has: Readonly<Record<string, number>>, floor = 0): HostOwners {
  const hosts = new HostOwners([...disks, ...Object.keys(has).map(hostOwner)], new Map(Object.entries(has)));
  hosts.opened(floor);
  return hosts;
}
const ids = (owners: ReturnType<HostOwners["wanted"]>) => owners && hostsOf(owners);

Deno.test("a host is ahead as long as it counts, and is on record in each configuration that may be (HO1)", () => {
  const hosts = opened(ONE, { a: 3 }, 3);
  assert.equal(hosts.isAhead("a"), true);
  assert.equal(hosts.isAhead("b"), false);
  hosts.has("b", 3);
  assert.equal(hosts.isAhead("b"), false, "it is not on record");
  hosts.proposed([...ONE, hostOwner("b")]);
  assert.deepEqual([hosts.isAhead("a"), hosts.isAhead("b")], [false, false], "either may be the one");
  assert.deepEqual([hosts.isAwaited("a"), hosts.isAwaited("b")], [true, true]);
  hosts.recorded([...ONE, hostOwner("b")]);
  assert.deepEqual([hosts.isAhead("a"), hosts.isAhead("b")], [false, true]);
  assert.equal(hosts.isAwaited("a"), false);
  hosts.drop("b");
  assert.deepEqual(
    [hosts.isAhead("b"), hosts.isAwaited("b")],
    [false, true],
    "it may have what nobody else has",
  );
});

Deno.test("an opening misses each host on record, and a disk, but for one disk with hosts (HO2, HO3)", () => {
  const nobody = { hosts: new Set<string>(), hasDisk: false };
  for (
    const [owners, asked, hosts, isDiskMissing] of [
      [ONE, nobody, [], true],
      [[...ONE, hostOwner("a")], nobody, ["a"], false],
      [[...TWO, hostOwner("a")], nobody, ["a"], true],
      [[...TWO, hostOwner("a")], { hosts: new Set(["a"]), hasDisk: false }, [], true],
      [[...TWO, hostOwner("a")], { hosts: new Set(["a"]), hasDisk: true }, [], false],
    ] as const
  ) {
    assert.deepEqual(missing(owners, asked), { hosts, isDiskMissing });
    assert.equal(hostsAreEnough(owners), hostsOf(owners).length > 0 && disksOf(owners).length === 1);
  }
});

Deno.test("with one disk others wait for all hosts that are on record, may be, or are to be; with more for none (HO3)", () => {
  const hosts = opened(ONE, { a: 3, b: 5 }, 3);
  assert.equal(hosts.held, 3);
  hosts.has("a", 6);
  assert.equal(hosts.held, 5);
  hosts.has("c", 4);
  assert.equal(hosts.held, 4, "one that is to be on record");
  hosts.drop("c");
  assert.equal(hosts.held, 5);
  hosts.drop("b");
  assert.equal(hosts.held, 0, "one that is on record, and can't be reached");
  hosts.proposed([...ONE, hostOwner("a"), hostOwner("d")]);
  hosts.recorded([...ONE, hostOwner("a")]);
  assert.equal(hosts.held, 6);
  hosts.proposed([...ONE, hostOwner("a"), hostOwner("d")]);
  assert.equal(hosts.held, 0, "one that may be on record");
  const two = opened(TWO, { a: 3 }, 3);
  assert.equal(two.held, Infinity);
  two.proposed([...ONE, hostOwner("a")]);
  assert.equal(two.held, 3, "there may be one disk only");
  two.recorded([...ONE, hostOwner("a")]);
  assert.equal(two.held, 3);
});

Deno.test("a host that lacks some of what the home was opened with is none until it has it, and nobody waits for it then", () => {
  const hosts = opened(ONE, { a: 3, b: 5 }, 5);
  assert.deepEqual([hosts.isAhead("a"), hosts.isAhead("b"), hosts.held], [false, true, 0]);
  assert.deepEqual(ids(hosts.wanted({ released: 0, kept: 5, disks: 1 })), ["b"]);
  hosts.recorded([...ONE, hostOwner("b")]);
  hosts.has("a", 4);
  assert.deepEqual([hosts.held, ids(hosts.wanted({ released: 0, kept: 5, disks: 1 }))], [5, ["b"]]);
  hosts.has("a", 5);
  assert.deepEqual(ids(hosts.wanted({ released: 0, kept: 5, disks: 1 })), ["b", "a"]);
});

Deno.test("a host is recorded beside one disk when it has all that was released, beside more at once (HO3)", () => {
  const hosts = opened(ONE, {});
  hosts.has("a", 4);
  assert.deepEqual(ids(hosts.wanted({ released: 5, kept: 9, disks: 1 })), []);
  assert.deepEqual(ids(hosts.wanted({ released: 5, kept: 9, disks: 2 })), ["a"]);
  assert.deepEqual(ids(hosts.wanted({ released: 4, kept: 9, disks: 1 })), ["a"]);
  hosts.recorded([...ONE, hostOwner("a")]);
  assert.deepEqual(ids(hosts.wanted({ released: 4, kept: 9, disks: 1 })), ["a"], "then others wait for it");
});

Deno.test("beside one disk a host is recorded when it has all that those were told that have left the record (HO3)", () => {
  for (const disks of [ONE, TWO]) {
    const hosts = opened(disks, { a: 3 }, 3);
    hosts.told("a", 9);
    hosts.drop("a");
    assert.deepEqual(ids(hosts.wanted({ released: 3, kept: 9, disks: disks.length })), []);
    hosts.recorded(disks);
    hosts.has("b", 3);
    const wanted = () => ids(hosts.wanted({ released: 3, kept: 9, disks: 1 }));
    assert.deepEqual(wanted(), [], "the disk alone has the rest");
    assert.equal(hosts.held, Infinity, "others do not wait for it, and it is sent what is released");
    hosts.has("b", 8);
    assert.deepEqual(wanted(), []);
    hosts.has("b", 9);
    assert.deepEqual(wanted(), ["b"]);
  }
});

Deno.test("a host leaves the record when those that stay have all that it was told (HO4)", () => {
  for (
    const [disks, kept, others, left] of [
      [ONE, 8, 9, false],
      [ONE, 9, 8, false], // an opening may find no disk
      [ONE, 9, 9, true],
      [TWO, 8, 9, false],
      [TWO, 9, 0, true], // a disk is always asked
    ] as const
  ) {
    const hosts = opened(disks, { a: 3, b: 3 }, 3);
    hosts.told("a", 7);
    hosts.told("a", 9);
    hosts.told("a", 8);
    hosts.drop("a");
    hosts.has("b", others);
    const wanted = ids(hosts.wanted({ released: 3, kept, disks: disks.length }));
    assert.deepEqual(wanted, left ? ["b"] : ["b", "a"], `${disks.length} ${kept} ${others}`);
  }
  const back = opened(ONE, { a: 3, b: 3 }, 3);
  back.told("a", 9);
  back.recorded([...ONE, hostOwner("b")]);
  back.recorded([...ONE, hostOwner("a"), hostOwner("b")]);
  assert.deepEqual(ids(back.wanted({ released: 3, kept: 3, disks: 1 })), ["a", "b"]);
  back.drop("a");
  assert.deepEqual(ids(back.wanted({ released: 3, kept: 3, disks: 1 })), ["b"], "that was before it left");
});

Deno.test("a commit that all hosts take is looked at once, and as often as somebody is to leave or come", () => {
  const all = Array.from({ length: HOSTS_MAX }, (_, i) => `h${i}`);
  const looksAt = (disks: typeof ONE, before: (hosts: HostOwners) => void) => {
    let looks = 0;
    const has = new Map(all.map((host) => [host, 1]));
    const home = { advanced: () => void looks++ };
    const hosts = new HostOwners([...disks, ...all.map(hostOwner)], has, home);
    hosts.opened(1);
    before(hosts);
    looks = 0;
    for (const host of all) if (hosts.isAhead(host)) hosts.has(host, 2);
    return looks;
  };
  assert.equal(looksAt(ONE, () => {}), 1, "with the last one others may be told");
  assert.equal(looksAt(TWO, () => {}), 0);
  assert.equal(looksAt(TWO, (hosts) => hosts.drop("h0")), HOSTS_MAX - 1);
  assert.equal(looksAt(TWO, (hosts) => hosts.wanted({ released: 1, kept: 1, disks: 1 })), HOSTS_MAX);
  assert.equal(looksAt(TWO, (hosts) => hosts.proposed([...TWO, ...all.map(hostOwner)])), HOSTS_MAX);
});
