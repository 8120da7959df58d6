#!/usr/bin/env python3
"""Vectors of docs/protocol/tokens.md, by an implementation that shares nothing with store/session/token.ts.

Only the standard library is used; AES-256 and GCM are below, written from FIPS 197 and NIST SP 800-38D.

    tokens.py           prints tests/golden/tokens.json
    tokens.py --open    reads {"secrets": [hex], "tokens": [text]} on stdin, prints a JSON list of their states
"""
import base64
import hashlib
import hmac
import json
import sys


# --- AES-256 (FIPS 197) ---

def build_sbox():
    sbox, p, q = [0] * 256, 1, 1
    while True:
        p = p ^ ((p << 1) & 0xFF) ^ (0x1B if p & 0x80 else 0)
        q ^= (q << 1) & 0xFF
        q ^= (q << 2) & 0xFF
        q ^= (q << 4) & 0xFF
        if q & 0x80:
            q ^= 0x09
        rotated = q
        for shift in range(1, 5):
            rotated ^= ((q << shift) | (q >> (8 - shift))) & 0xFF
        sbox[p] = rotated ^ 0x63
        if p == 1:
            sbox[0] = 0x63
            return sbox


SBOX = build_sbox()


def expand_key(key):
    words = [list(key[i:i + 4]) for i in range(0, 32, 4)]
    rcon = 1
    for i in range(8, 60):
        word = list(words[i - 1])
        if i % 8 == 0:
            word = [SBOX[b] for b in word[1:] + word[:1]]
            word[0] ^= rcon
            rcon = (rcon << 1) ^ (0x11B if rcon & 0x80 else 0)
        elif i % 8 == 4:
            word = [SBOX[b] for b in word]
        words.append([a ^ b for a, b in zip(words[i - 8], word)])
    return [sum(words[i:i + 4], []) for i in range(0, 60, 4)]


def double(b):
    return ((b << 1) ^ (0x1B if b & 0x80 else 0)) & 0xFF


def encrypt_block(round_keys, block):
    state = [a ^ b for a, b in zip(block, round_keys[0])]
    for number, round_key in enumerate(round_keys[1:], 1):
        state = [SBOX[state[(i + 4 * (i % 4)) % 16]] for i in range(16)]
        if number < 14:
            mixed = []
            for c in range(0, 16, 4):
                col = state[c:c + 4]
                total = col[0] ^ col[1] ^ col[2] ^ col[3]
                mixed += [col[i] ^ total ^ double(col[i] ^ col[(i + 1) % 4]) for i in range(4)]
            state = mixed
        state = [a ^ b for a, b in zip(state, round_key)]
    return bytes(state)


# --- GCM (SP 800-38D), 96-bit IVs ---

def multiply(x, y):
    product = 0
    for bit in range(127, -1, -1):
        if (x >> bit) & 1:
            product ^= y
        y = (y >> 1) ^ (0xE1 << 120 if y & 1 else 0)
    return product


def gcm(key, iv, aad, text, sealed):
    """The other text and the tag; `sealed` says whether `text` is the ciphertext."""
    round_keys = expand_key(key)
    h = int.from_bytes(encrypt_block(round_keys, bytes(16)), "big")
    out = b""
    for i in range(0, len(text), 16):
        stream = encrypt_block(round_keys, iv + (2 + i // 16).to_bytes(4, "big"))
        out += bytes(a ^ b for a, b in zip(text[i:i + 16], stream))
    cipher = text if sealed else out
    pad = lambda data: data + bytes(-len(data) % 16)
    hashed = pad(aad) + pad(cipher) + (8 * len(aad)).to_bytes(8, "big") + (8 * len(cipher)).to_bytes(8, "big")
    y = 0
    for i in range(0, len(hashed), 16):
        y = multiply(y ^ int.from_bytes(hashed[i:i + 16], "big"), h)
    mask = int.from_bytes(encrypt_block(round_keys, iv + b"\0\0\0\1"), "big")
    return out, (y ^ mask).to_bytes(16, "big")


# --- HKDF-SHA256 (RFC 5869) with an empty salt ---

def hkdf(secret, info, length):
    prk = hmac.new(bytes(32), secret, hashlib.sha256).digest()
    out, block = b"", b""
    while len(out) < length:
        block = hmac.new(prk, block + info + bytes([len(out) // 32 + 1]), hashlib.sha256).digest()
        out += block
    return out[:length]


# --- The token (docs/protocol/tokens.md) ---

EPOCH_S = 1735689600  # 2025-01-01


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def header_of(secrets, state, issued_s, iv):
    day = (issued_s - EPOCH_S) // 86400
    return (bytes([2 if "followed" in state else 1]) + hkdf(secrets[-1], b"sojourn cluster", 8) +
            hkdf(secrets[0], b"sojourn token key id", 4) +
            state["replica"].to_bytes(3, "big") + day.to_bytes(2, "big") + iv)


def key_of(secret, header):
    return hmac.new(hkdf(secret, b"sojourn token key", 32),
                    b"sojourn token" + header[13:18] + b"\1", hashlib.sha256).digest()


def path_bytes(state):
    path, followed = state["path"], state.get("followed")
    if followed is None:
        return varint(len(path)) + b"".join(varint(0 if p is None else p + 1) for p in path)
    pending = sum(1 << i for i, p in enumerate(path) if p is None)
    return varint(pending) + varint(len(path)) + b"".join(
        varint(f if p is None else p) for p, f in zip(path, followed))


def seal(secrets, state, issued_s, lifetime_s, iv):
    header = header_of(secrets, state, issued_s, iv)
    body = (bytes.fromhex(state["session"]) + bytes([state["open"]]) + varint(state["sequence"]) +
            varint(state["clock"]) + varint((issued_s - EPOCH_S) % 86400) + varint(lifetime_s) +
            path_bytes(state))
    cipher, tag = gcm(key_of(secrets[0], header), iv, header[:18], body, False)
    return base64.urlsafe_b64encode(header + cipher + tag).decode().rstrip("=")


def unseal(secrets, text):
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    header, cipher, tag = data[:30], data[30:-16], data[-16:]
    secret = next(s for s in secrets if hkdf(s, b"sojourn token key id", 4) == header[9:13])
    body, expected = gcm(key_of(secret, header), header[18:30], header[:18], cipher, True)
    if tag != expected:
        return None
    state = {"session": body[:16].hex(), "open": bool(body[16]), "replica": int.from_bytes(header[13:16], "big")}
    at = 17
    state["sequence"], at = read_varint(body, at)
    state["clock"], at = read_varint(body, at)
    second, at = read_varint(body, at)
    state["issuedS"] = EPOCH_S + int.from_bytes(header[16:18], "big") * 86400 + second
    state["lifetimeS"], at = read_varint(body, at)
    pending = None
    if header[0] == 2:
        pending, at = read_varint(body, at)
        state["followed"] = []
    count, at = read_varint(body, at)
    state["path"] = []
    for number in range(count):
        position, at = read_varint(body, at)
        if pending is None:
            state["path"].append(None if position == 0 else position - 1)
        else:
            state["path"].append(None if pending >> number & 1 else position)
            state["followed"].append(position if pending >> number & 1 else 0)
    assert at == len(body)
    return state


def self_check():
    """The example of FIPS 197, C.3, and test case 16 of the GCM specification."""
    key = bytes(range(32))
    block = bytes.fromhex("00112233445566778899aabbccddeeff")
    assert encrypt_block(expand_key(key), block).hex() == "8ea2b7ca516745bfeafc49904b496089"
    key = bytes.fromhex("feffe9928665731c6d6a8f9467308308" * 2)
    text = bytes.fromhex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                         "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39")
    aad = bytes.fromhex("feedfacedeadbeeffeedfacedeadbeefabaddad2")
    cipher, tag = gcm(key, bytes.fromhex("cafebabefacedbaddecaf888"), aad, text, False)
    assert tag.hex() == "76fc6ece0f4e1768cddf8853bb2d551b"
    assert gcm(key, bytes.fromhex("cafebabefacedbaddecaf888"), aad, cipher, True)[0] == text


def vectors():
    secrets = [hashlib.sha256(b"newest").digest(), hashlib.sha256(b"oldest").digest()]
    plain = {"session": "000102030405060708090a0b0c0d0e0f", "sequence": 0, "replica": 1, "clock": 0,
             "path": [], "open": False}
    cases = [
        ("least", plain, EPOCH_S, 1),
        ("a token of the root", {**plain, "sequence": 1, "clock": 127, "path": [128]}, EPOCH_S + 86399, 2592000),
        ("a token of an edge, pending towards the root",
         {**plain, "sequence": 300, "replica": 77, "clock": 2**40, "path": [None, 0, 16383]}, 1780000000, 2592000),
        ("open", {**plain, "replica": 65536, "open": True, "path": [None, None]}, 1790000001, 60),
        ("pending towards the root, of which something is named",
         {**plain, "sequence": 2, "replica": 300, "clock": 2**41, "path": [None, 9, 128], "followed": [300, 0, 0]},
         1790000001, 60),
        ("pending towards two, of which one is named",
         {**plain, "clock": 5, "path": [None, None, 7], "followed": [0, 2**52, 0]}, 1790000002, 60),
        ("greatest pending", {"session": "ff" * 16, "sequence": 2**53 - 1, "replica": 2**24 - 1,
                              "clock": 2**53 - 1, "path": [None] * 12, "followed": [2**53 - 2] * 12, "open": True},
         EPOCH_S + 65535 * 86400 + 86399, 2592000),
        ("greatest", {"session": "ff" * 16, "sequence": 2**53 - 1, "replica": 2**24 - 1, "clock": 2**53 - 1,
                      "path": [2**53 - 2] * 12, "open": True}, EPOCH_S + 65535 * 86400 + 86399, 2592000),
    ]
    tokens = []
    for number, (name, state, issued, lifetime) in enumerate(cases):
        iv = hashlib.sha256(bytes([number])).digest()[:12]
        tokens.append({"name": name, "state": state, "issuedS": issued, "lifetimeS": lifetime, "iv": iv.hex(),
                       "token": seal(secrets, state, issued, lifetime, iv)})
    session = bytes(range(16))
    ids = [{"session": session.hex(), "app": app,
            "id": base64.urlsafe_b64encode(hmac.new(session, b"sojourn session\0" + app.encode(),
                                                    hashlib.sha256).digest()[:16]).decode().rstrip("=")}
           for app in ("board", "guestbook")]
    return {"secrets": [s.hex() for s in secrets], "fingerprint": hkdf(secrets[-1], b"sojourn cluster", 8).hex(),
            "tokens": tokens, "sessionIds": ids}


self_check()
if __name__ == "__main__":  # sealed_secrets.py uses the ciphers
    if sys.argv[1:] == ["--open"]:
        asked = json.load(sys.stdin)
        keys = [bytes.fromhex(s) for s in asked["secrets"]]
        print(json.dumps([unseal(keys, text) for text in asked["tokens"]]))
    else:
        print(json.dumps(vectors(), indent=1))
