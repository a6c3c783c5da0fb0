import type { Backend } from "../backends/backend.ts";
import type { AuditLog } from "./audit-log.ts";
import { openBackendAuditLog } from "./backend-audit-log.ts";
import { openFileAuditLog } from "./file-audit-log.ts";

/** The audit log that `--audit-log` names: `backend`, or a file. */
export function openAuditLog(where: string, backend: Backend): AuditLog {
  return where === "backend" ? openBackendAuditLog(backend.records) : openFileAuditLog(where, backend.identity);
}
