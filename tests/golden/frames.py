"""Test vectors of the link protocol, computed from docs/protocol/frames.md alone.

Shares no code with the implementation. `python3 frames.py` prints frames.json.
"""
import hashlib
import hmac
import json
import struct


def mac(key, label, *parts):
    return hmac.new(key, b"sojourn link " + label + b"\0" + b"".join(parts), hashlib.sha256).digest()


def text(value):
    raw = value.encode()
    return bytes([len(raw)]) + raw


def frame(kind, body=b""):
    return bytes([kind]) + struct.pack(">I", len(body))[1:] + body


def record(key, sequence, payload):
    covered = struct.pack(">QI", sequence, len(payload)) + payload
    return covered[8:] + hmac.new(key, covered, hashlib.sha256).digest()[:16]


def message(body):
    return struct.pack(">H", len(body)) + body


secret = b"the secret of the golden cluster"
dialer = {"site": "edge-1", "incarnation": "edge-1/7", "nonce": bytes(range(32)), "boot": b"\x01" * 8}
acceptor = {"site": "core-1", "incarnation": "core-1/\u00fc", "nonce": bytes(range(255, 223, -1)), "boot": b"\x02" * 8}

hello = (b"\x01" + b"SJRN" + bytes([1, 1]) + dialer["nonce"] + b"\x01" + text(dialer["site"])
         + text(dialer["incarnation"]) + dialer["boot"] + text(acceptor["site"]))
covered = (b"\x02" + bytes([1]) + acceptor["nonce"] + text(acceptor["site"]) + text(acceptor["incarnation"])
           + acceptor["boot"])
transcript = hashlib.sha256(b"sojourn link transcript\0" + message(hello) + message(covered)).digest()
session = mac(secret, b"session", transcript)
acceptor_proof = mac(secret, b"acceptor proof", transcript)
dialer_proof = mac(secret, b"dialer proof", transcript)
dialer_key = mac(session, b"dialer records")
acceptor_key = mac(session, b"acceptor records")
verdict_key = mac(session, b"verdict")


def verdict(admitted, reason):
    body = b"\x04" + bytes([admitted]) + text(reason)
    return body + hmac.new(verdict_key, body, hashlib.sha256).digest()


u32 = lambda n: struct.pack(">I", n)
frames = {
    "message": frame(0x01, b"store"),
    "messageBegin": frame(0x02, u32(32769) + b"\xab" * 32768),
    "messagePart": frame(0x03, b"\xab"),
    "messageCredit": frame(0x04, u32(1048576)),
    "open": frame(0x10, u32(1) + b"\x00" + text("http") + b"head"),
    "openBodiless": frame(0x10, u32(3) + b"\x01" + text("admin")),
    "answer": frame(0x11, u32(1) + b"\x00" + b"answer"),
    "data": frame(0x12, u32(1) + b"bytes"),
    "dataLast": frame(0x13, u32(1)),
    "stop": frame(0x14, u32(1)),
    "reset": frame(0x15, u32(1) + b"\x02" + "given up \u2713".encode()),
    "credit": frame(0x16, u32(1) + u32(262144)),
    "ping": frame(0x20, u32(7)),
    "pong": frame(0x21, u32(7)),
    "goodbye": frame(0x22, b"the site stops"),
}
first = frames["ping"] + frames["message"]

print(json.dumps({
    "secret": secret.hex(),
    "dialer": {**dialer, "nonce": dialer["nonce"].hex(), "boot": dialer["boot"].hex(), "role": "child"},
    "acceptor": {**acceptor, "nonce": acceptor["nonce"].hex(), "boot": acceptor["boot"].hex()},
    "handshake": {
        "dialerHello": message(hello).hex(),
        "acceptorHello": message(covered + acceptor_proof).hex(),
        "dialerProof": message(b"\x03" + dialer_proof).hex(),
        "verdictAdmitted": message(verdict(1, "")).hex(),
        "verdictRefused": message(verdict(0, "site edge-1 is not known")).hex(),
    },
    "transcript": transcript.hex(),
    "keys": {
        "session": session.hex(),
        "dialerRecords": dialer_key.hex(),
        "acceptorRecords": acceptor_key.hex(),
        "verdict": verdict_key.hex(),
    },
    "frames": {name: raw.hex() if len(raw) < 1000 else {"sha256": hashlib.sha256(raw).hexdigest(), "length": len(raw)}
               for name, raw in frames.items()},
    "records": [
        {"from": "dialer", "sequence": 0, "payload": first.hex(), "bytes": record(dialer_key, 0, first).hex()},
        {"from": "dialer", "sequence": 1, "payload": frames["goodbye"].hex(),
         "bytes": record(dialer_key, 1, frames["goodbye"]).hex()},
        {"from": "acceptor", "sequence": 0, "payload": frames["pong"].hex(),
         "bytes": record(acceptor_key, 0, frames["pong"]).hex()},
    ],
}, indent=2))
