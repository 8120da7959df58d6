/**
 * Tells public IP addresses from private ones. Everything that is not known to be public is private: loopback,
 * link-local, private networks, shared and documentation ranges, multicast, and what embeds another address (IANA's
 * special-purpose registries, RFC 6890).
 */
import { isIPv4, isIPv6 } from "node:net";

const PRIVATE_IPV4: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
];

const ipv4Number = (address: string): number =>
  address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);

/** Reports whether an IP address may be reached by any app that declared its host. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return isPublicIpv4(ipv4Number(address));
  if (!isIPv6(address) || address.includes("%")) return false;
  const groups = ipv6Groups(address);
  const [first = 0, second = 0] = groups;
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    return isPublicIpv4((groups[6] ?? 0) * 65536 + (groups[7] ?? 0));
  }
  // Global unicast is 2000::/3; within it 2001::/23 (Teredo and protocols), 2001:db8::/32 (documentation) and
  // 2002::/16 (6to4, which embeds an IPv4 address) are special.
  if (first < 0x2000 || first > 0x3fff || first === 0x2002) return false;
  return !(first === 0x2001 && (second < 0x200 || second === 0xdb8)) && first !== 0x3fff;
}

function isPublicIpv4(address: number): boolean {
  return !PRIVATE_IPV4.some(([network, bits]) => {
    const size = 2 ** (32 - bits);
    const start = ipv4Number(network);
    return address >= start && address < start + size;
  });
}

/** Returns the eight groups of a valid IPv6 address. */
function ipv6Groups(address: string): number[] {
  const dotted = address.replace(/(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})$/, (v4) => {
    const n = ipv4Number(v4);
    return `${Math.floor(n / 65536).toString(16)}:${(n % 65536).toString(16)}`;
  });
  const [head = "", tail] = dotted.split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const gap = tail === undefined ? [] : Array.from({ length: 8 - left.length - right.length }, () => "0");
  return [...left, ...gap, ...right].map((group) => Number.parseInt(group, 16));
}
