import { describeBackendContract } from "../backends/contract.ts";
import { contractS3 } from "../backends/s3-fixture.ts";
import { startVersitygw } from "./peers/versitygw.ts";

describeBackendContract(contractS3("s3 on versitygw, which honours If-Match on DELETE", startVersitygw, { folderMarkers: [".pulumi/locks/organization/"] }));
