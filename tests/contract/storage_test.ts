/** Every storage under the one contract. */
import { storageContract } from "./storage_contract.ts";
import { storageModel } from "./storage_model.ts";
import { storageSubjects } from "./storage_subjects.ts";

for (const subject of storageSubjects) {
  storageContract(subject);
  storageModel(subject);
}
