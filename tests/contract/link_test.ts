import { MemoryTransport, TCP } from "../../runtime/link/mod.ts";
import { linkContract } from "./link_contract.ts";

linkContract("TCP", () => TCP);
linkContract("memory", () => new MemoryTransport());
