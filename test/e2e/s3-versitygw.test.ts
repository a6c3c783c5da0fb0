import { describeBackendContract } from "../backends/contract.ts";
import { contractS3 } from "../backends/s3-fixture.ts";
import { startVersitygw } from "./peers/versitygw.ts";

describeBackendContract(contractS3("s3 on versitygw, which honours If-Match on DELETE", startVersitygw, { folderMarkers: [".pulumi/locks/organization/"] }));

describeBackendContract(
  contractS3("s3 as AWS answers: versitygw, and 404 for the delete of what is gone", startVersitygw, {
    folderMarkers: [".pulumi/locks/organization/"],
    likeAws: true,
  }),
);
