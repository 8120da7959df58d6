/** Owners groups on every storage that a site below the root may have. */
import { ownersContract } from "./owners_contract.ts";
import { storageSubjects } from "./storage_subjects.ts";

// The simulated disk has its own time: tests/owners/sim runs on it.
for (const subject of storageSubjects) if (subject.name !== "simulated disk") ownersContract(subject);
