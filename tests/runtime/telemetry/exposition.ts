/**
 * A strict reader of Prometheus text (exposition format 0.0.4), which shares nothing with the writer: what it takes,
 * a scraper takes.
 *
 * P1  `# HELP`, then `# TYPE`, then the samples of that family, and the family never again.
 * P2  No sample twice; label names sorted as they come, none twice in a sample.
 * P3  A histogram has rising bounds that end in +Inf, counts that do not fall, and a `_count` equal to the last.
 */
import assert from "node:assert/strict";

/** A line with a value. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A family as it stands on the page. */
export interface ExposedFamily {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: Sample[];
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: [""],
  gauge: [""],
  histogram: ["_bucket", "_sum", "_count"],
};

/** Reads a page. @throws AssertionError naming the line that a scraper would refuse. */
export function readExposition(text: string): Map<string, ExposedFamily> {
  assert.ok(text.endsWith("\n"), "the last line has no line feed");
  const families = new Map<string, ExposedFamily>();
  let help: [string, string] | null = null;
  let family: ExposedFamily | null = null;
  for (const line of text.slice(0, -1).split("\n")) {
    const comment = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line);
    if (comment !== null) {
      const [, kind, name = "", rest = ""] = comment;
      assert.match(name, NAME, line);
      if (kind === "HELP") {
        assert.match(rest, /^(?:[^\\]|\\[\\n])*$/, `an escape that is none: ${line}`);
        help = [name, rest];
        continue;
      }
      assert.equal(help?.[0], name, `no HELP before: ${line}`);
      assert.ok(rest in SUFFIXES, `an unknown type: ${line}`);
      assert.ok(!families.has(name), `a family that was there before: ${line}`);
      family = { name, type: rest, help: help?.[1] ?? "", samples: [] };
      families.set(name, family);
      continue;
    }
    assert.ok(family !== null, `a sample outside a family: ${line}`);
    const sample = readSample(line);
    const suffix = sample.name.slice(family.name.length);
    assert.ok(
      sample.name.startsWith(family.name) && SUFFIXES[family.type]?.includes(suffix),
      `a stranger: ${line}`,
    );
    family.samples.push(sample);
  }
  for (const one of families.values()) checkFamily(one);
  return families;
}

function readSample(line: string): Sample {
  const [, name = "", labelText = "", valueText = ""] =
    /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  assert.notEqual(name, "", `no sample: ${line}`);
  const labels: Record<string, string> = {};
  let rest = labelText;
  while (rest !== "") {
    const [whole = "", label = "", raw = ""] =
      /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,(?=.)|$)/.exec(rest) ?? [];
    assert.notEqual(whole, "", `no label: ${rest} in ${line}`);
    assert.ok(!(label in labels), `a label twice: ${line}`);
    labels[label] = raw.replace(/\\([\\"n])/g, (_, c: string) => c === "n" ? "\n" : c);
    rest = rest.slice(whole.length);
  }
  assert.match(valueText, /^(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]Inf|NaN)$/i, line);
  return { name, labels, value: valueText === "+Inf" ? Infinity : Number(valueText) };
}

function checkFamily({ name, type, help, samples }: ExposedFamily): void {
  assert.notEqual(help, "", `${name} says nothing`);
  assert.ok(samples.length > 0, `${name} has no sample`);
  if (type === "counter") assert.match(name, /_total$/);
  const seen = new Set<string>();
  for (const sample of samples) {
    const id = sample.name + JSON.stringify(Object.entries(sample.labels).sort());
    assert.ok(!seen.has(id), `${id} stands twice`);
    seen.add(id);
    if (type !== "gauge") assert.ok(sample.value >= 0, `${id} is below 0`);
  }
  if (type === "histogram") checkHistogram(name, samples);
}

function checkHistogram(name: string, samples: readonly Sample[]): void {
  const series = new Map<string, Sample[]>();
  for (const sample of samples) {
    const { le: _, ...labels } = sample.labels;
    const id = JSON.stringify(Object.entries(labels).sort());
    series.set(id, [...series.get(id) ?? [], sample]);
  }
  for (const [id, lines] of series) {
    const buckets = lines.filter((line) => line.name === `${name}_bucket`);
    const bounds = buckets.map((line) => line.labels.le === "+Inf" ? Infinity : Number(line.labels.le));
    assert.equal(bounds.at(-1), Infinity, `${name}${id} has no last bucket`);
    for (let i = 1; i < buckets.length; i++) {
      assert.ok((bounds[i] ?? 0) > (bounds[i - 1] ?? 0), `${name}${id}: bounds do not rise`);
      assert.ok((buckets[i]?.value ?? 0) >= (buckets[i - 1]?.value ?? 0), `${name}${id}: counts fall`);
    }
    const [count, ...more] = lines.filter((line) => line.name === `${name}_count`);
    assert.equal(more.length, 0);
    assert.equal(count?.value, buckets.at(-1)?.value, `${name}${id}: the count is not the last bucket's`);
    assert.equal(lines.filter((line) => line.name === `${name}_sum`).length, 1);
  }
}
